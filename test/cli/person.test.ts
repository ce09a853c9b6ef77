// The person at the terminal: while a question stands there, nothing else is shown.

import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Question } from '@drover/core/agent/calls';
import type { Shown } from '@drover/core/bus';
import { expect, test } from 'vitest';
import { Person } from '../../bin/execution/person.ts';
import type { Io } from '../../bin/io.ts';

const question = (requestId: string): Question =>
  ({ requestId, subject: 'touch x', label: { name: 'shell' } }) as unknown as Question;
const request = (requestId: string): Shown => ({ type: 'permission_request', requestId }) as unknown as Shown;

function someone(): { readonly person: Person; readonly type: (line: string) => void; readonly screen: () => string } {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  let text = '';
  stderr.on('data', (data: Buffer) => (text += data.toString()));
  const person = Person.at({ stdin, stderr } as unknown as Io);
  if (person === undefined) throw new Error('nobody is there');
  return { person, type: (line) => stdin.write(`${line}\n`), screen: () => text };
}

test('the view waits from the moment it has shown the request until the answer is typed', async () => {
  const { person, type, screen } = someone();
  const answer = person.ask(question('ask_1'), new AbortController().signal);
  await person.untilUnasked(); // the request has yet to be shown
  person.sees(request('ask_1'));
  let hasGoneOn = false;
  const waiting = person.untilUnasked().then(() => (hasGoneOn = true));
  await sleep(30);
  expect([screen(), hasGoneOn]).toEqual(['  Allow shell: touch x? [y]es [n]o [a]lways: ', false]);
  type('y');
  expect(await answer).toEqual({ allowed: true, always: false });
  await waiting;
  person.close();
});

test('a request that nobody is asked about holds nothing up, and neither does one that is withdrawn', async () => {
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
