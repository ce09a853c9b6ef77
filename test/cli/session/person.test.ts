// Questions at the terminal: nothing else is printed while one is open.

import { PassThrough } from 'node:stream';
import type { Question } from '@drover/core/agent/calls/calls';
import type { Shown } from '@drover/core/bus';
import { expect, test } from 'vitest';
import { Person } from '../../../bin/terminal/person.ts';
import type { Io } from '../../../bin/io.ts';

const question = (requestId: string): Question =>
  ({ requestId, subject: 'touch x', label: { name: 'shell' } }) as unknown as Question;
const request = (requestId: string): Shown => ({ type: 'permission_request', requestId }) as unknown as Shown;

function someone(): {
  readonly person: Person;
  readonly type: (line: string) => void;
  readonly press: (keys: string) => void;
  readonly screen: () => string;
} {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  let text = '';
  stderr.on('data', (data: Buffer) => (text += data.toString()));
  const person = Person.at({ stdin, stderr } as unknown as Io);
  if (person === undefined) throw new Error('nobody is there');
  return { person, type: (line) => stdin.write(`${line}\n`), press: (keys) => stdin.write(keys), screen: () => text };
}

test('the view pauses from the shown request until the answer is typed', async () => {
  const { person, type, screen } = someone();
  const answer = person.ask(question('ask_1'), new AbortController().signal);
  await person.untilUnasked(); // the request is not shown yet
  person.sees(request('ask_1'));
  let hasGoneOn = false;
  const waiting = person.untilUnasked().then(() => (hasGoneOn = true));
  await expect.poll(screen, { timeout: 20_000 }).toBe('  Allow shell: touch x? [y]es [n]o [a]lways: ');
  expect(hasGoneOn).toBe(false);
  type('y');
  expect(await answer).toEqual({ allowed: true, always: false });
  await waiting;
  person.close();
});

test('a question about an MCP tool shows its arguments', async () => {
  const { person, type, screen } = someone();
  const asked = { ...question('ask_1'), tool: 'mcp__db__drop', subject: 'db.drop', input: { table: 'users' } };
  const answer = person.ask(
    { ...asked, label: { ...asked.label, name: 'mcp__db__drop' } },
    new AbortController().signal,
  );
  person.sees(request('ask_1'));
  await expect.poll(screen, { timeout: 20_000 }).toContain('db.drop {"table":"users"}');
  type('n');
  await answer;
  person.close();
});

test('a request without a question, or a withdrawn one, does not pause the view', async () => {
  const { person } = someone();
  person.sees(request('ask_1'));
  await person.untilUnasked();
  const controller = new AbortController();
  const answer = person.ask(question('ask_2'), controller.signal);
  person.sees(request('ask_2'));
  controller.abort();
  expect(await answer).toBeUndefined();
  await person.untilUnasked();
  person.close();
});

const WORDS = 'Go on? [y]es [n]o: ';
const CHOICES = new Map([
  ['y', 'yes'],
  ['n', 'no'],
]);

test('a line typed before a question does not answer it', async () => {
  const { person, type, screen } = someone();
  type('y');
  const { signal } = new AbortController();
  const first = person.choose(WORDS, CHOICES, signal);
  await expect.poll(screen, { timeout: 20_000 }).toBe(WORDS);
  type('n');
  expect(await first).toBe('no');
  // A line typed between two questions answers neither.
  type('y');
  const second = person.choose(WORDS, CHOICES, signal);
  await expect.poll(screen, { timeout: 20_000 }).toBe(WORDS + WORDS);
  type('n');
  expect(await second).toBe('no');
  person.close();
});

test('keys typed before a question are not part of its answer', async () => {
  const { person, type, press, screen } = someone();
  press('y');
  const answer = person.choose(WORDS, CHOICES, new AbortController().signal);
  await expect.poll(screen, { timeout: 20_000 }).toBe(WORDS);
  press('\n');
  // An empty line is not an answer, so drover asks again.
  await expect.poll(screen, { timeout: 20_000 }).toBe(WORDS + WORDS);
  type('n');
  expect(await answer).toBe('no');
  person.close();
});
