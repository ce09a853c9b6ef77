// The guarantees of drover, one sentence each. A test cites one with proves(). The tests fail for a guarantee without
// proof, and docs/guarantees.md lists the same sentences with their tests.

export const guarantees = {
  'request.always-valid':
    'Drover never sends a malformed request, even after crashes, discarded answers or a change of model.',
  'request.byte-stable':
    'The same history gives the same bytes in every process, so the provider’s prompt cache is hit.',
  'stream.never-half': 'A truncated stream is never taken for a complete answer, and none of its calls runs.',
  'stream.any-bytes': 'How the bytes of an answer arrive never changes what they mean.',
  'stream.no-hanging': 'A stalled provider is detected, and the failure says at which stage it stalled.',
  'retry.as-told': 'Drover waits as long as a server asks, and at most a quarter longer.',
  'key.stays-home': 'A redirect never carries the key to another host.',
  'calls.one-result':
    'Every call gets exactly one result, also when it is refused, malformed, unknown, failing or interrupted.',
  'turn.one-ending': 'Every turn ends exactly once, and says truthfully how.',
  'cancel.leaves-nothing': 'Cancelling closes the connection at once and leaves no process behind.',
  'output.bounded': 'A tool’s output may be of any size; memory stays bounded.',
  'files.inside': 'File tools never read or write outside the workspace, by path or by link.',
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
  'sandbox.required': 'If a sandbox is required, as in CI, and none works, drover stops before it sends a request.',
  'doors.claude-files':
    'A skill, an agent and a hook written for Claude Code work unchanged once you trust them, and do nothing before.',
  'telemetry.same-trace':
    'A run has one trace: live, exported afterwards and after a resume its spans have the same ids, times and parents.',
  'trust.by-content':
    'A file of a project that can make drover do something counts only as you approved it, byte for byte, at its place.',
  'sandbox.kept': 'The config of a project never turns the sandbox off, approved or not.',
  'budget.holds': 'The budget is reserved before each request, so it is never passed.',
  'bus.nobody-waits':
    'A slow or stalled view delays no worker and no other view, and loses only deltas that `message_end` repairs.',
  'journal.kill-anywhere': 'After a power loss at any moment, no reported event is lost and no call runs twice.',
  'secrets.hidden': 'Keys and tokens are never shown, even if they arrive in several deltas.',
  'secrets.unsent':
    'Provider keys and the server’s token are never sent to a model, even if a file or a command shows them.',
  'json.only-events': '--json prints one event per line and nothing else; the last line is the ending.',
  'checkout.untouched':
    'A run never writes to your checkout unless asked; it is audited before and after, and a difference stops the delivery.',
  'workspace.clean':
    'Leftovers of a worker in its workspace or its git are removed before the next task, and never run.',
  'run.kill-anywhere': 'A run killed at any moment resumes to the same result, and no answer is bought twice.',
  'merge.green-only': 'Nothing lands unless the gates passed on exactly the tree that lands.',
  'merge.keeps-work': 'No branch or workspace is removed while it holds the only copy of work.',
  'throttle.one-gate': 'A rate limit hit by one worker slows all, so no worker storms the provider.',
  'cache.shared': 'Workers start with the coordinator’s exact prefix, so all share the provider’s cache.',
  'worker.lost-alone':
    'A worker that crashes, hangs or runs out of memory costs its own attempt alone, and leaves no process. Workers that shared its thread resume in another: no attempt counts, no answer is bought twice, no call runs twice.',
  'hosts.keys-stay': 'Worker hosts need no provider key and get none: only the coordinator asks models.',
  'hosts.lost':
    'A worker host that is killed, cut off or stopped costs its tasks nothing but time: they resume elsewhere with all files, no attempt counts, no call runs twice, and at most one answer each is bought again.',
  'hosts.signed': 'A job or message that is unsigned, replayed or of an older placement is refused and logged.',
  'server.strangers-out':
    'Without its token, from a foreign page, or under a foreign name, the server does nothing and tells nothing.',
  'server.bounded':
    'A thousand idle clients, a stalled reader and an endless sender delay no other client, and memory stays bounded.',
  'server.every-event-once':
    'Reconnecting with `Last-Event-ID` delivers every later event exactly once, also after the server was killed.',
  'server.refused-changes-nothing': 'A refused request says why, and changes nothing.',
  'remote.survives': 'A session that waits for a remote tool survives kill -9 and resumes with the result.',
  'page.inert': 'The page never runs, loads or hides text of a model, a tool or a file.',
  'chat.nothing-lost': 'A chat can be interrupted at any time: completed work stays, and the next message follows it.',
} as const;

export type Guarantee = keyof typeof guarantees;
