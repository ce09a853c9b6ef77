// The guarantees of drover, one sentence each. A test cites one with proves(). The tests fail for a guarantee without
// proof, and the README lists the same sentences.

export const guarantees = {
  'request.always-valid':
    'Whatever a conversation went through, drover never sends a request a provider refuses as malformed.',
  'request.byte-stable':
    'The same history gives the same bytes in every process, so the provider’s prompt cache is hit.',
  'stream.never-half': 'A stream that ends before its end is never taken for an answer, and none of its calls is run.',
  'stream.any-bytes': 'How the bytes of an answer arrive never changes what they mean.',
  'stream.no-hanging': 'A provider that goes quiet is noticed, and the failure says which way it was quiet.',
  'retry.as-told': 'A server that asks to wait is waited for: at least as long as it said, at most a quarter more.',
  'key.stays-home': 'A redirect never carries the key to another host.',
  'calls.one-result':
    'Every call gets exactly one result, also when it is refused, malformed, unknown, failing or interrupted.',
  'turn.one-ending': 'Every turn ends exactly once, and says truthfully how.',
  'cancel.leaves-nothing':
    'Cancelling closes the connection at once and leaves no process behind, whatever a command started.',
  'output.bounded': 'A tool’s output may be of any size: memory does not grow with it.',
  'files.inside': 'File tools never read or write outside the workspace, by whatever path or link.',
  'permission.asked': 'Outside a sandbox no shell command runs unasked, unless your rules allow every command in it.',
  'permission.deny-wins':
    'A deny rule also holds with --yes and for wrapped commands; outside a sandbox a command that hides what it runs never runs unasked.',
  'sandbox.files':
    'Inside the sandbox commands and gates reach no file of yours outside the workspace: no key, no other project, no state of drover.',
  'sandbox.network': 'Inside the sandbox a command reaches the hosts that you name with --net, and no others.',
  'sandbox.processes': 'Inside the sandbox a command sees no process but its own, and leaves none behind.',
  'sandbox.own-folder':
    'In your own folder no command in the sandbox changes .git, or a file that other programs run later.',
  'sandbox.deny-paths': 'Inside the sandbox a path that a deny rule names is denied to every program.',
  'sandbox.never-outside': 'A command whose sandbox does not start is never run outside it.',
  'sandbox.required': 'Where a sandbox is required, as in CI, and none works, drover stops before anything is spent.',
  'sandbox.kept': 'The config of a project never turns the sandbox off, approved or not.',
  'budget.holds': 'The budget is reserved before each request, so it is never passed.',
  'bus.nobody-waits': 'A view that is slow, or stuck, delays nobody and loses nothing that matters.',
  'journal.kill-anywhere': 'Pull the plug at any moment: what was told is not lost, and no call is made twice.',
  'secrets.hidden': 'Keys and tokens are not shown, not even when they arrive in pieces.',
  'secrets.unsent':
    'Keys of providers and the server’s token are never sent to a model, whatever file or command shows them.',
  'json.only-events': '--json prints one event a line and nothing else, and its last line says how it ended.',
  'checkout.untouched':
    'A run never writes your checkout unless asked to; it is looked at before and after, and a difference stops the delivery.',
  'workspace.clean':
    'Whatever a worker leaves in its workspace, or in the git there, is gone before the next task and is never run.',
  'run.kill-anywhere': 'A run that is killed at any moment goes on to the same result, and no answer is bought twice.',
  'merge.green-only': 'Nothing lands unless the gates passed on exactly the tree that lands.',
  'merge.keeps-work': 'No branch or workspace is removed while it holds the only copy of work.',
  'throttle.one-gate': 'A refusal for one worker slows all, and nobody storms the provider.',
  'cache.shared': 'Workers begin with the coordinator’s own bytes, so the provider’s cache is shared by all of them.',
  'worker.lost-alone':
    'A worker that crashes, hangs or runs out of memory costs its own attempt, and leaves no process.',
  'server.strangers-out':
    'Without its token, from a foreign page, or under a foreign name, the server does nothing and tells nothing.',
  'server.bounded':
    'A thousand idle clients, one that reads nothing and one that sends without end delay nobody, and memory stays bounded.',
  'server.every-event-once':
    'Who comes back with the number of the last event gets every later one once, also from a server that was killed.',
  'server.refused-changes-nothing': 'A request that is refused says why, and has changed nothing.',
  'remote.survives': 'A session that waits for a tool elsewhere waits through kill -9, and goes on with its result.',
  'page.inert': 'On the page nothing that a model, a tool or a file says is run, loaded or hidden.',
  'chat.nothing-lost':
    'Interrupt a chat as often as you like: what was completed stays, and the next message is sent behind it.',
} as const;

export type Guarantee = keyof typeof guarantees;
