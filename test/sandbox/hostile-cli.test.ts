// Hostile commands through drover: a model requests them, they reach nothing outside, and no outside text or key is
// sent to the model.

import { join } from 'node:path';
import type { SandboxSystem } from '@drover/sandbox/policy';
import type { Answer, Script } from '@drover/rehearsal/script';
import { type Rehearsal, startRehearsal } from '@drover/rehearsal/server';
import { expect, onTestFinished, test } from 'vitest';
import { drover, type Ran } from '../cli/fake-io.ts';
import { processesWith } from '../cli/program.ts';
import { calls, planned, RunDesk, submits, statuses } from '../support/run/run-desk.ts';
import { inSandbox } from '../support/sandbox/box.ts';
import { ATTACKS } from '../support/sandbox/hostile/all.ts';
import { HostileWorld, MARK } from '../support/sandbox/hostile/world.ts';

const EVERY = 9;
const KEY = 'sk-ant-planted-0123456789abcdef';

inSandbox('hostile commands through drover', (system) => {
  test.each([[[]], [['--yes']]])('exec %j: nothing is reached, and no secret is sent', async (flags) => {
    const { world, server, ran } = await execute(system, flags);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const sent = server.requests.map(({ rawBody, body }) => `${rawBody}${JSON.stringify(body)}`).join('');
    expect([MARK, 'GOT_THROUGH', KEY].filter((text) => sent.includes(text))).toEqual([]);
    expect(world.harm(ran.stdout)).toEqual([]);
  });

  test('a task and its gate write into no other workspace, and leave no process', async () => {
    const nap = `3601.${process.pid}`;
    const find =
      'find / \\( -path /usr -o -path /proc -o -path /opt -o -path "$PWD" \\) -prune -o -name shared.txt -print';
    const spoil = `for f in $(${find} 2>/dev/null); do echo evil > $f; done`;
    const attack = (own: string): readonly Answer[] => [
      calls('shell', {
        command: `${spoil}; echo ${own} > ${own}.txt; setsid sleep ${nap} > /dev/null 2>&1 & sleep 0.1`,
      }),
      submits('done'),
    ];
    const desk = await RunDesk.with(planned({ one: { answers: attack('one') }, two: { answers: attack('two') } }), {
      'shared.txt': 'shared\n',
    });
    const ran = await desk.run(['run', 'go', '--gate', `${spoil}; grep -q shared shared.txt`]);
    expect(statuses(ran.end)).toEqual({ one: 'landed', two: 'landed' });
    expect(desk.delivered(ran.end.run ?? '')).toEqual({ 'shared.txt': 'shared', 'one.txt': 'one', 'two.txt': 'two' });
    expect(await desk.read('shared.txt')).toBe('shared\n');
    expect(processesWith(nap)).toEqual([]);
  });
});

type Executed = { readonly world: HostileWorld; readonly server: Rehearsal; readonly ran: Ran };

async function execute(system: SandboxSystem, flags: readonly string[]): Promise<Executed> {
  const world = await HostileWorld.open(system);
  const sample = ATTACKS.filter((_, at) => at % EVERY === 0);
  const answers = sample.map((attack) => calls('shell', { command: world.command(attack) }));
  const script: Script = { order: 'conversation', answers: [...answers, { text: 'That is all.' }] };
  const server = await startRehearsal(script);
  onTestFinished(() => server.close());
  const env = {
    ...world.env,
    DROVER_HOME: join(world.around, 'drover'),
    ANTHROPIC_API_KEY: KEY,
    ANTHROPIC_BASE_URL: server.url,
  };
  const ran = await drover(
    ['exec', 'go', '--model', 'anthropic/scripted', '--turns', '500', '--sandbox', 'required', ...flags],
    {
      cwd: world.root,
      env,
    },
  );
  return { world, server, ran };
}
