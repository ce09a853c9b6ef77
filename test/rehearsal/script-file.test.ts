// Script files: valid ones, and reports of mistakes.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { globSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { FAULTS } from '@drover/rehearsal/faults/fault';
import { loadRehearsalScript, parseRehearsalScript } from '@drover/rehearsal/load';
import { ScriptError } from '@drover/rehearsal/script';
import { at, post, requestFor, send, stage } from './clients.ts';

async function fileOf(name: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rehearsal-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, name), text);
  return join(folder, name);
}

test('a script in YAML is read', async () => {
  const text = `
    answers:
      - text: hello
      - when: { text: '/bye/i' }
        text: { repeat: 'bye ', times: 2 }
        fault: [crlf, { fault: cut, after: 1 }]
    agents:
      bob: [{ calls: [{ name: read, args: { path: a.txt } }] }]
    faults:
      - { at: 1, fault: status, status: 529, headers: { retry-after: '3' } }
    cache: { tokensMin: 10 }
  `;
  expect(await parseRehearsalScript(text, 'x.yaml')).toEqual({
    answers: [
      { text: 'hello' },
      { when: { text: '/bye/i' }, text: { repeat: 'bye ', times: 2 }, fault: ['crlf', { fault: 'cut', after: 1 }] },
    ],
    agents: { bob: [{ calls: [{ name: 'read', args: { path: 'a.txt' } }] }] },
    faults: [{ at: 1, fault: 'status', status: 529, headers: { 'retry-after': '3' } }],
    cache: { tokensMin: 10 },
  });
});

test('a bare list is read as the answers', async () => {
  expect(await parseRehearsalScript('- text: a\n- text: b\n', 'x.yaml')).toEqual({
    answers: [{ text: 'a' }, { text: 'b' }],
  });
  await expect(parseRehearsalScript('- text: a\n- txt: b\n', 'x.yaml')).rejects.toThrow(
    new ScriptError("x.yaml:2:3: unknown key 'txt'; did you mean text?"),
  );
});

test.each([
  ['answers:\n  - txt: hi\n', "2:5: unknown key 'txt'; did you mean text?"],
  ['answers:\n  - text: 5\n', '2:11: answers[0].text must be text or a map of keys (got 5)'],
  ['answers: 5', '1:10: answers must be a list (got 5)'],
  ['answers:\n - calls:\n    - nam: x\n', "3:7: unknown key 'nam'; did you mean name?"],
  ['answers:\n - when: {text: "("}\n', '2:17: Invalid regular expression: /(/: Unterminated group'],
  [
    'answers:\n - {text: x, stop: edn}\n',
    "2:20: answers[0].stop must be one of end, calls, length, refusal, filter, pause, context, failed (got 'edn'); did you mean end?",
  ],
  ['answers:\n - when: {text: "/+/i"}\n', '2:17: Invalid regular expression: /+/: Nothing to repeat'],
  [
    'answers:\n - fault: [cut, ct]\n',
    "2:17: answers[0].fault[1] must be one of ok-error, no-headers, no-first-byte, drop, whole-json, error-event, failed, cut, reset, silence, pings-only, comments-only and 62 others (got 'ct'); did you mean cut?",
  ],
  ['answers:\n - fault: {fault: cut, afer: 3}\n', "2:24: unknown key 'afer'; did you mean after?"],
  ['faults:\n  - {at: 1, fault: status}\nanswers: []\n', '2:5: faults[0].status is missing; it must be a number'],
  [
    'faults:\n  - {at: 1, fault: sttus}\nanswers: []\n',
    "2:20: faults[0].fault must be one of status, redirect, error-event, failed, cut, reset, silence, pings-only, comments-only, not-json, huge-event, endless-line and 64 others (got 'sttus'); did you mean status?",
  ],
  ['agents:\n  a: {markr: x, answers: []}\n', "2:7: unknown key 'markr'; did you mean marker?"],
  ['limits: {request: 5}\nanswers: []', "1:10: unknown key 'request'; did you mean requests?"],
  ['answers: [\n', '2:1: Flow sequence in block collection must be sufficiently indented and end with a ]'],
  ['', '1:1: the script has no answers; give `answers` or `agents`'],
])('%j is reported with its mistake', async (text, message) => {
  await expect(parseRehearsalScript(text, 'x.yaml')).rejects.toThrow(new ScriptError(`x.yaml:${message}`));
});

test('every fault can be named in a file', async () => {
  const SETTINGS: Readonly<Record<string, object>> = {
    status: { status: 500 },
    redirect: { location: 'http://127.0.0.1/' },
  };
  const faults = Object.keys(FAULTS).map((fault) => ({ fault, ...SETTINGS[fault] }));
  expect(await parseRehearsalScript(stringify({ answers: [{ fault: faults }] }), 'x.yaml')).toEqual({
    answers: [{ fault: faults }],
  });
});

test('a script may repeat values by aliases, but not expand without bound', async () => {
  expect(await parseRehearsalScript('answers: [&a { text: hi }, *a]', 'x.yaml')).toEqual({
    answers: [{ text: 'hi' }, { text: 'hi' }],
  });
  const level = (at: number) =>
    `  - &l${at} [${Array(10)
      .fill(`*l${at - 1}`)
      .join(', ')}]\n`;
  const bomb = `keys:\n  - &l0 [${Array(10).fill('x').join(', ')}]\n${[1, 2, 3, 4, 5, 6, 7, 8].map(level).join('')}`;
  await expect(parseRehearsalScript(bomb, 'x.yaml')).rejects.toThrow(
    /^x\.yaml:\d+:\d+: the aliases make more than 100000 values; use fewer/,
  );
  await expect(parseRehearsalScript('answers: &a [*a]', 'x.yaml')).rejects.toThrow(
    new ScriptError('x.yaml:1:14: the alias *a stands inside its own anchor'),
  );
});

test('a missing script, and one that exports nothing, are reported', async () => {
  await expect(loadRehearsalScript('/no/such/script.yaml')).rejects.toThrow(
    /^\/no\/such\/script\.yaml:1:1: cannot be read: ENOENT.*; name a script that exists$/,
  );
  const path = await fileOf('empty.mjs', 'export const answers = [];');
  await expect(loadRehearsalScript(path)).rejects.toThrow(
    `${path}:1:1: exports no script; write \`export default { answers: [...] }\``,
  );
});

test.each([
  ['a script', 'export default { answers: [{ text: "hi" }] };'],
  ['a list of answers', 'export default [{ text: "hi" }];'],
  ['a function', 'export default ({ text }) => (text === "go" ? { text: "hi" } : undefined);'],
])('a module exports %s', async (_, code) => {
  const { server } = await stage(await loadRehearsalScript(await fileOf('script.mjs', code)));
  expect(at((await post(server, 'openai-chat', requestFor('openai-chat'))).json, 'choices.0.message.content')).toBe(
    'hi',
  );
});

const examples = globSync('examples/rehearsal/*.yaml');

test('there are examples', () => {
  expect(examples.length).toBeGreaterThan(2);
});

test.each(examples)('%s can be played', async (path) => {
  const { server } = await stage(await loadRehearsalScript(path));
  const ask = () => send(server, 'anthropic', { body: requestFor('anthropic', {}, 'You are the coordinator') });
  // Some examples break on purpose.
  for (let n = 0; n < 4; n++)
    await ask()
      .then((response) => response.text())
      .catch(() => 'broken');
  expect(server.requests.map(({ status }) => status)).toContain(200);
  expect(server.rejections).toBe(0);
});

test('the workers of the example take the same steps concurrently', async () => {
  const { server } = await stage(await loadRehearsalScript('examples/rehearsal/coordinator-and-workers.yaml'));
  const step = async (task: string, steps: number): Promise<unknown> => {
    const behind = Array.from({ length: steps }, (_, index) => [
      { role: 'assistant', content: [{ type: 'tool_use', id: `c${index}`, name: 'grep', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `c${index}`, content: 'found' }] },
    ]).flat();
    const messages = [{ role: 'user', content: task }, ...behind];
    const { json } = await post(server, 'anthropic', requestFor('anthropic', { messages }));
    return at(json, 'content.0.name') ?? at(json, 'content.1.input.summary') ?? at(json, 'content.0.text');
  };
  const one = 'Replace moment in src/dates.ts';
  const two = 'Replace moment in src/logs.ts';
  expect([await step(one, 0), await step(two, 0), await step(one, 1), await step(one, 2), await step(two, 1)]).toEqual([
    'grep',
    'grep',
    'step 2: replaced',
    'Done.',
    'step 2: replaced',
  ]);
});
