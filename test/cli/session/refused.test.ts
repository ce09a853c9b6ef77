// Exit code 8: an agent whose last calls were refused is blocked, even if it reports success or was interrupted.

import { expect, test } from 'vitest';
import { Desk } from '../desk.ts';

const call = (name: string, args: object): string => `  - {calls: [${JSON.stringify({ name, args })}]}\n`;
const DENIED = call('write', { path: 'x', content: 'x' });
const LIST = call('list', { path: '.' });
const UNKNOWN = call('no_such_tool', {});
const MALFORMED = call('list', { path: 7 });
const SAYS = '  - text: That is all.\n';
const FAILS = '  - fault: {fault: status, status: 401}\n';
const EMPTY = "  - text: ''\n";

const script = (...answers: readonly string[]): string => `order: conversation\nanswers:\n${answers.join('')}`;
const RULES = ['--deny', 'write(**)'];
const SENTENCE = 'its last calls were not allowed (exit code 8)';

test.each<[string, number, readonly string[], readonly string[]]>([
  ['a refused call, then words', 8, [DENIED, SAYS], []],
  ['a refused call, then one that works', 0, [DENIED, LIST, SAYS], []],
  ['one that works, then a refused one', 8, [LIST, DENIED, SAYS], []],
  ['a refused call, then an unknown tool', 8, [DENIED, UNKNOWN, SAYS], []],
  ['a refused call, then arguments that do not fit', 8, [DENIED, MALFORMED, SAYS], []],
  ['an unknown tool alone', 0, [UNKNOWN, SAYS], []],
  ['refused calls up to the limit of steps', 8, [DENIED, DENIED, SAYS], ['--turns', '2']],
  ['calls that work up to the limit of steps', 3, [LIST, LIST, SAYS], ['--turns', '2']],
  ['calls that work up to --steps', 3, [LIST, LIST, SAYS], ['--steps', '2']],
  ['calls that work up to --steps=2', 3, [LIST, LIST, SAYS], ['--steps=2']],
  ['a refused call, one that works, and the limit', 3, [DENIED, LIST, SAYS], ['--turns', '2']],
  ['a refused call, then empty answers', 8, [DENIED, EMPTY, EMPTY], []],
  ['empty answers alone', 3, [LIST, EMPTY, EMPTY], []],
  ['a refused call, then a provider that fails', 9, [DENIED, FAILS], []],
])('%s: exit code %i', async (_, code, answers, args) => {
  const desk = await Desk.with(script(...answers));
  const ran = await desk.exec('s', 'go', [...RULES, ...args]);
  expect([ran.code, ran.stdout.includes(SENTENCE)]).toEqual([code, code === 8]);
});

test('a refused call counts even beside one that works', async () => {
  const both = [
    { name: 'write', args: { path: 'x', content: 'x' } },
    { name: 'list', args: { path: '.' } },
  ];
  const desk = await Desk.with(script(`  - {calls: ${JSON.stringify(both)}}\n`, SAYS));
  expect((await desk.exec('s', 'go', RULES)).code).toBe(8);
});

test('a new message resets the refused calls', async () => {
  const desk = await Desk.with(script(DENIED, SAYS, SAYS));
  expect([(await desk.exec('s', 'go', RULES)).code, (await desk.exec('s', 'thanks', RULES)).code]).toEqual([8, 0]);
});

test('a resumed session knows calls that were refused before', async () => {
  const desk = await Desk.with(script(DENIED, SAYS));
  const stopped = await desk.exec('s', 'go', [...RULES, '--turns', '1']);
  const resumed = await desk.run(['resume', 's', ...RULES]);
  expect([stopped.code, resumed.code, resumed.stdout.includes(SENTENCE)]).toEqual([8, 8, true]);
});

test('a resumed session that finds another way succeeds', async () => {
  const desk = await Desk.with(script(DENIED, LIST, SAYS));
  await desk.exec('s', 'go', [...RULES, '--turns', '1']);
  expect((await desk.run(['resume', 's', ...RULES])).code).toBe(0);
});

test('a session that lost only its ending is still blocked', async () => {
  const desk = await Desk.with(script(DENIED, SAYS));
  await desk.exec('s', 'go', RULES);
  const records = await desk.records('s');
  await desk.rewrite(
    's',
    records.filter(({ type }) => type !== 'done' && type !== 'session_end'),
  );
  expect((await desk.run(['resume', 's', ...RULES])).code).toBe(8);
});

test('output that quotes a refusal is not a refusal', async () => {
  const shell = call('shell', { command: 'echo "Not allowed: this"; exit 1' });
  const desk = await Desk.with(script(shell, SAYS));
  await desk.exec('s', 'go', [...RULES, '--yes', '--turns', '1']);
  expect((await desk.run(['resume', 's', ...RULES])).code).toBe(0);
});

test('a denied call appears in the lines, in show, and in its JSON', async () => {
  const desk = await Desk.with(script(DENIED, DENIED, SAYS));
  const ran = await desk.exec('s', 'go', RULES);
  expect(ran.stdout).toContain('✗ not allowed: write: x: denied by the rule write(**)');
  expect((await desk.run(['show', 's'])).stdout).toContain('write: x — denied by the rule write(**) (2 times)');
  const { denied } = JSON.parse((await desk.run(['show', 's', '--json'])).stdout) as { denied: unknown };
  expect(denied).toEqual([{ summary: 'write: x', why: 'denied by the rule write(**)', times: 2 }]);
});

const TOUCH = call('shell', { command: 'touch made' });
const COMPUTED = call('shell', { command: '$(echo git) push' });

test.each<[string, string, readonly string[], string]>([
  [
    'a path outside the workspace',
    call('write', { path: '../x', content: 'x' }),
    [],
    'no rule lets a file tool write there; --writable PATH lets contained commands do so',
  ],
  [
    'a path in .git',
    call('write', { path: '.git/config', content: 'x' }),
    ['--ask', 'write'],
    'no rule lets a file tool write there; the commit tool makes commits',
  ],
  [
    'an ask rule for a file',
    call('write', { path: 'x', content: 'x' }),
    ['--ask', 'write', '--allow', 'write(x)'],
    '--yes would allow it, and --allow would not: an ask rule wins over an allow rule',
  ],
  [
    'an ask rule for a command',
    TOUCH,
    ['--ask', 'shell(touch *)', '--allow', 'shell(touch made)'],
    '--yes would allow it, and --allow would not: an ask rule wins over an allow rule',
  ],
  [
    'a deny rule that may concern a command',
    COMPUTED,
    ['--sandbox', 'off', '--deny', 'shell(git push*)'],
    'neither --allow nor --yes would allow it: a deny rule wins over both',
  ],
])('a refusal suggests only rules that help: %s', async (_, answer, args, remedy) => {
  const desk = await Desk.with(script(answer, SAYS));
  const { stdout } = await desk.exec('s', 'go', args);
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`there is no terminal to ask on; ${remedy}`);
});
