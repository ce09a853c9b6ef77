// Sandboxes of a turn: one is started before the first command, and none is left at the end.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as afterEvents } from 'node:timers/promises';
import type { Provider } from '@drover/core/model/provider';
import { builtinTools } from '@drover/core/tools/builtin';
import { keepProcessBoxes } from '@drover/core/tools/process/boxes';
import { prepareShellProcess, runShell } from '@drover/core/tools/process/run-shell';
import { remoteTool } from '@drover/core/tools/remote';
import type { Script } from '@drover/rehearsal/script';
import { expect, test } from 'vitest';
import { processesWith } from '../cli/program.ts';
import { agentOn, providerOn, rehearsal, type Rehearsed, type Settings } from '../support/agent.ts';
import { box, type Box, inSandbox } from '../support/sandbox/box.ts';
import { allGone, namespaceOf, waiting } from '../support/sandbox/waiting.ts';

const NAMESPACE = 'readlink /proc/self/ns/pid';

type Moment = 'request' | 'call';

const runs = (command: string): Script => ({
  answers: [{ calls: [{ name: 'shell', args: { command } }] }, { text: 'done' }],
});

/** A session in a box. `at` runs, and is awaited, when a request is sent and when the model begins a call. */
async function sessionIn(
  { policy, root }: Box,
  script: Script,
  { at, ...settings }: Settings & { readonly at: (moment: Moment) => Promise<void> },
): Promise<Rehearsed> {
  const server = await rehearsal(script);
  const provider = await providerOn(server, 'anthropic');
  const stream: Provider['stream'] = async function* (request, signal) {
    await at('request');
    for await (const event of provider.stream(request, signal)) {
      yield event;
      if (event.type === 'toolcall_start') await at('call');
    }
  };
  const context = {
    cwd: root,
    env: { PATH: '/usr/bin:/bin' },
    outputFolder: join(policy.folder, 'out'),
    sandbox: policy,
  };
  return agentOn(script, { provider: { ...provider, stream }, context, ...settings });
}

const outputsOf = ({ events }: Awaited<ReturnType<Rehearsed['run']>>) =>
  events.flatMap((event) => (event.type === 'tool_execution_end' ? [event.output.trim()] : []));

inSandbox('sandboxes of a turn', (system) => {
  /** True if a box was started before the probe box that starts now. */
  async function hasBox({ policy }: Box): Promise<boolean> {
    await afterEvents();
    const other = box(system);
    using _boxes = keepProcessBoxes(other.policy);
    prepareShellProcess({ cwd: other.root, env: {}, sandbox: other.policy }, 'certain');
    await waiting(other);
    return processesWith(policy.folder).length > 0;
  }

  test('the first command runs in the sandbox started during the request', async () => {
    const here = box(system);
    const shells: string[] = [];
    const at = async (moment: Moment) => {
      if (moment === 'request' && shells.length === 0) shells.push(namespaceOf(await waiting(here)));
    };
    const { run } = await sessionIn(here, runs(NAMESPACE), { at });
    expect(outputsOf(await run('go'))).toEqual(shells);
    await allGone(here);
  });

  test('with placeholders missing, the sandbox starts when the model begins a call', async () => {
    const root = join(box(system).around, 'root');
    const sealed = [join(root, '.envrc')];
    const here = box(system, { root, sealed });
    const seen: unknown[] = [];
    const at = async (moment: Moment) => {
      if (moment === 'request') seen.push([moment, existsSync(sealed[0] ?? ''), await hasBox(here)]);
      else seen.push([moment, namespaceOf(await waiting(here)), existsSync(sealed[0] ?? '')]);
    };
    const { run } = await sessionIn(here, runs(NAMESPACE), { at });
    const [output] = outputsOf(await run('go'));
    expect(seen.slice(0, 2)).toEqual([
      ['request', false, false],
      ['call', output, true],
    ]);
    await allGone(here);
  });

  test('none is started for an agent without a shell', async () => {
    const here = box(system);
    const seen: boolean[] = [];
    const tools = builtinTools.filter(({ name }) => name !== 'shell');
    const at = async () => void seen.push(await hasBox(here));
    const { run } = await sessionIn(here, { answers: [{ text: 'done' }] }, { at, tools });
    await run('go');
    expect(seen).toEqual([false]);
  });

  test('none is left by a turn without a command', async () => {
    const here = box(system);
    const { run } = await sessionIn(
      here,
      { answers: [{ text: 'done' }] },
      { at: async () => void (await waiting(here)) },
    );
    await run('go');
    await allGone(here);
  });

  test('none is left by a turn that was cancelled during the request', async () => {
    const here = box(system);
    const cancel = new AbortController();
    const at = async () => {
      await waiting(here);
      cancel.abort();
    };
    const { run } = await sessionIn(here, { answers: [{ text: 'done' }] }, { at });
    expect((await run('go', cancel.signal)).result.outcome.status).toBe('cancelled');
    await allGone(here);
  });

  test('none is left by a session that waits for a remote tool', async () => {
    const here = box(system);
    const remote = remoteTool({ name: 'editor', description: 'Opens a file.', schema: { type: 'object' } });
    const answers = [{ calls: [{ name: 'editor', args: {} }] }];
    const at = async (moment: Moment) => void (moment === 'request' && (await waiting(here)));
    const { run } = await sessionIn(here, { answers }, { at, tools: [...builtinTools, remote] });
    expect((await run('go')).result.outcome.status).toBe('suspended');
    await allGone(here);
  });

  test('a command cancelled while its sandbox starts does not begin', async () => {
    const { policy: sandbox, root: cwd } = box(system);
    const cancel = new AbortController();
    const spec = { script: 'touch begun', cwd, env: {}, sandbox, callId: 'call_test', timeoutMs: 60_000 };
    const running = runShell({ ...spec, onOutput: () => undefined }, cancel.signal);
    cancel.abort();
    await expect(running).rejects.toThrow('interrupted before it was started');
    await allGone({ policy: sandbox });
    expect(existsSync(join(cwd, 'begun'))).toBe(false);
  });
});
