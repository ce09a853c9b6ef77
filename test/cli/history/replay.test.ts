// drover replay of sessions: the same output from the journal alone; nothing is executed or stored.

import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { journalPath } from '@drover/core/journal/session-journal';
import { isJsonObject } from '@drover/protocol/json';
import { expect, test } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { Desk, steady } from '../desk.ts';
import { FakeIo } from '../fake-io.ts';
import { until } from '../../support/until.ts';

const call = (name: string, args: object): string => `{name: ${name}, args: ${JSON.stringify(args)}}`;
const shell = (command: string): string => call('shell', { command });
const script = (...answers: readonly string[]): string =>
  `order: conversation\nanswers:\n${answers.map((answer) => `  - ${answer}\n`).join('')}`;

test('replay of a session repeats it and executes nothing', async () => {
  const desk = await Desk.with(
    script(`{thinking: Hm., text: I make it., calls: [${shell('echo made > file')}]}`, '{text: Made.}', '{text: Yes.}'),
  );
  await desk.exec('s', 'make a file', ['--yes']);
  await desk.exec('s', 'is it there?');
  await rm(join(desk.cwd, 'file'));
  await rm(join(desk.cwd, 'script.yaml'));
  const before = await readdir(desk.home, { recursive: true });
  const { code, stdout, stderr } = await desk.run(['replay', 's']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(`\n${steady(stdout)}`).toMatchInlineSnapshot(`
    "
    drover rehearsal/script.yaml in <cwd>

    ❯ make a file

      · thought for <time>

    I make it.

      ▸ shell: echo made > file
      ✓ <time>  (no output)

    Made.

    ✓ done  <time> · <tokens>

    ❯ is it there?

    Yes.

    ✓ done  <time> · <tokens>
      the same as recorded: 6 messages
    "
  `);
  expect(existsSync(join(desk.cwd, 'file'))).toBe(false);
  expect(await readdir(desk.home, { recursive: true })).toEqual(before);
});

const LIVES: readonly [how: string, script: string, args?: readonly string[]][] = [
  [
    'calls what is not there, and wrongly',
    script(`{calls: [${call('nosuch', {})}, ${call('read', { path: 5 })}]}`, '{text: Oh.}'),
  ],
  [
    'is not allowed to',
    script(`{calls: [${shell('touch x')}, ${shell('ls')}]}`, '{text: Oh.}'),
    ['--deny', 'shell(touch*)'],
  ],
  ['reaches a limit', script(`{calls: [${shell('ls')}]}`, '{text: Done.}'), ['--turns', '1']],
  ['meets a wrong key', script(`{calls: [${shell('ls')}]}`, '{fault: {fault: status, status: 401}}')],
  ['meets a wrong key at once', script('{fault: {fault: status, status: 401}}')],
  ['is refused', script(`{calls: [${shell('ls')}]}`, '{text: No., stop: refusal}')],
  [
    'writes a call as text',
    'answers: [{text: "<invoke name=\\"shell\\"><parameter name=\\"command\\">ls</parameter></invoke>"}, {text: Done.}]',
  ],
  ['is cut off', script('{text: It is, stop: length}')],
  ['pauses', script('{text: It is, stop: pause}', '{text: " done."}')],
  ['says nothing at first', 'answers: [{text: ""}, {text: Done.}]'],
  ['has broken arguments', script(`{fault: args-not-json, calls: [${shell('ls')}]}`, '{text: Done.}')],
];

test.each(LIVES)('replay of a session that %s matches the original', async (_, text, args = []) => {
  const desk = await Desk.with(text);
  await desk.exec('s', 'go', ['--view', 'silent', '--yes', ...args]);
  expect(await desk.run(['replay', 's', '--view', 'silent'])).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('replay ends a turn as it ended originally', async () => {
  const desk = await Desk.with(script(`{calls: [${shell('echo begun; sleep 60')}]}`, '{text: Done.}'));
  const fake = new FakeIo({ cwd: desk.cwd });
  const argv = ['exec', 'go', '--session', 's', '--yes', '--json', '--model', 'rehearsal/script.yaml'];
  const running = main(argv, fake.io);
  await until(() => fake.stdout.includes('"delta":"begun'));
  fake.stop('SIGINT');
  await running;
  const { code, stdout } = await desk.run(['replay', 's', '--json']);
  const last = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as object;
  expect([code, last]).toEqual([0, expect.objectContaining({ outcome: 'incomplete', reason: 'interrupted' })]);
});

test('replay leaves template syntax in an answer as it was', async () => {
  const desk = await Desk.with(
    script(`{thinking: "{{ text }}", text: "{{ text }}", calls: [${shell('echo "{{ text }}"')}]}`, '{text: Done.}'),
  );
  await desk.exec('s', '{{ model }} {{{ task }}} {{{{step}}}} {{ results.0', ['--yes']);
  expect(JSON.stringify(await desk.records('s'))).toContain(
    'echo \\"{{ model }} {{{ task }}} {{{{step}}}} {{ results.0',
  );
  expect(await desk.run(['replay', 's', '--view', 'silent'])).toEqual({ code: 0, stdout: '', stderr: '' });
});

test.each(['rehearsal-openai', 'rehearsal-openai-chat'])(
  'replay of a session with %s matches the original',
  async (provider) => {
    const desk = await Desk.with(script(`{thinking: Hm., calls: [${shell('ls')}, ${shell('pwd')}]}`, '{text: Done.}'));
    await desk.run(['exec', 'go', '--session', 's', '--yes', '--model', `${provider}/script.yaml`]);
    const { code, stdout } = await desk.run(['replay', 's', '--json']);
    const types = stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { readonly type: string }).type);
    expect([code, types[0], types.at(-1)]).toEqual([0, 'session_start', 'session_end']);
  },
);

test('replay repeats an interrupted turn up to its interruption', async () => {
  const desk = await Desk.with(script(`{text: I look., calls: [${shell('ls')}, ${shell('pwd')}]}`, '{text: Done.}'));
  await desk.exec('whole', 'go', ['--yes']);
  const records = await desk.records('whole');
  for (const [at, { type }] of records.entries()) {
    if (at < 2 || type === 'session_end') continue;
    await mkdir(join(desk.home, 'sessions', 'cut'), { recursive: true });
    await desk.rewrite('cut', records.slice(0, at + 1));
    const { code, stderr } = await desk.run(['replay', 'cut', '--view', 'silent']);
    expect([at, type, code, stderr]).toEqual([at, type, 0, '']);
  }
});

test('replay repeats an oversized result unchanged and stores it nowhere', async () => {
  const desk = await Desk.with(script(`{calls: [${call('read', { path: 'sub/long.txt' })}]}`, '{text: Done.}'));
  await mkdir(join(desk.cwd, 'sub'));
  await writeFile(join(desk.cwd, 'sub/long.txt'), `${'text '.repeat(9)}\n`.repeat(400));
  await writeFile(join(desk.cwd, 'sub/AGENTS.md'), 'An instruction.\n'.repeat(1_000));
  await desk.exec('s', 'go');
  const end = (await desk.records('s')).find(({ type }) => type === 'tool_execution_end');
  expect(JSON.stringify(end?.['output']).length).toBeGreaterThan(31_000);
  expect(await desk.run(['replay', 's', '--view', 'silent'])).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('replay shows the first difference if the session diverges', async () => {
  const desk = await Desk.with(script(`{calls: [${shell('echo one')}]}`, '{text: Done.}'));
  await desk.exec('s', 'go', ['--yes']);
  const records = await desk.records('s');
  await desk.rewrite(
    's',
    records.map((record) => {
      const isResult = isJsonObject(record['message'] ?? '') && JSON.stringify(record).includes('"role":"tool"');
      return isResult && record['type'] === 'message_end'
        ? JSON.parse(JSON.stringify(record).replace('one', 'two'))
        : record;
    }),
  );
  const { code, stderr } = await desk.run(['replay', 's', '--view', 'silent']);
  expect([code, stderr.replaceAll(/toolu_\w+/g, '<id>').replaceAll(/…[^:]*name/g, '…name')]).toMatchInlineSnapshot(`
    [
      1,
      "drover: message 3 is not as recorded
      recorded: …":"shell","output":"two","isError":false}]}
      replayed: …":"shell","output":"one","isError":false}]}
    ",
    ]
  `);
});

test('replay counts a different ending as a difference', async () => {
  const desk = await Desk.with(script('{text: Done.}'));
  await desk.exec('s', 'go');
  const records = await desk.records('s');
  await desk.rewrite(
    's',
    records.map((record) => (record['type'] === 'done' ? { ...record, type: 'cancelled' } : record)),
  );
  expect(await desk.run(['replay', 's', '--view', 'silent'])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'drover: turn 1 ended as done, and was recorded as cancelled\n',
  });
});

test('SIGINT ends the replay of a session', async () => {
  const desk = await Desk.with(script('{text: {repeat: "word ", times: 5}}'));
  await desk.exec('s', 'go');
  const fake = new FakeIo({ cwd: desk.cwd });
  const onStop = fake.io.onStop;
  const io = {
    ...fake.io,
    onStop: (listener: Parameters<typeof onStop>[0]) => {
      listener.stop('SIGINT');
      return onStop(listener);
    },
  };
  expect(await main(['replay', 's'], io)).toBe(130);
});

test('a journal without any request cannot be replayed', async () => {
  const desk = await Desk.with(script('{text: Done.}'));
  await desk.exec('s', 'go');
  await desk.rewrite('s', (await desk.records('s')).slice(0, 1));
  expect(existsSync(journalPath(desk.home, 's'))).toBe(true);
  expect(await desk.run(['replay', 's'])).toEqual({
    code: 2,
    stdout: '',
    stderr: 'drover: nothing was asked in session s yet, so there is nothing to replay\n',
  });
});
