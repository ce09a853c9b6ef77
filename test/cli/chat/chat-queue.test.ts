// Messages queued while the agent works: delivered at the next step, after the turn, or taken back.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChatDesk, KEYS } from './chat-desk.ts';

const wait = {
  calls: [{ name: 'shell', args: { command: 'echo begun; until [ -e go ]; do sleep 0.05; done' } }],
};
const UNASKED = ['--yes', '--sandbox', 'off'];

test('a queued message is visible, and reaches the model at its next step', async () => {
  const desk = await ChatDesk.with({ answers: [wait, { text: 'Tabs it is.' }] });
  const chat = desk.chat(UNASKED);
  await chat.types('format it', KEYS.enter);
  await chat.shows('▸ shell');
  chat.press('use ta');
  await chat.shows('❯ use ta');
  chat.press(`bs${KEYS.enter}`);
  await chat.shows('queued at the next step: use tabs');
  await writeFile(join(desk.cwd, 'go'), '');
  await chat.shows('Tabs it is.');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(2)]).toEqual([
    0,
    ['user: format it', 'assistant: tool_use', 'user: tool_result | use tabs'],
  ]);
  expect(await chat.screen()).toContain('❯ use tabs');
});

test('Up takes a queued message back into the draft', async () => {
  const desk = await ChatDesk.with({ answers: [wait, { text: 'Done.' }] });
  const chat = desk.chat(UNASKED);
  await chat.types('go', KEYS.enter);
  await chat.shows('▸ shell');
  chat.press(`no, stop${KEYS.enter}`);
  await chat.shows('queued at the next step: no, stop');
  chat.press(KEYS.up);
  await chat.shows('❯ no, stop');
  chat.press(KEYS.ctrlU);
  await writeFile(join(desk.cwd, 'go'), '');
  await chat.shows('Done.');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(2).at(-1)]).toEqual([0, 'user: tool_result']);
});

test('a message behind a queued command waits with it, and goes to the new model', async () => {
  const desk = await ChatDesk.with({ answers: [wait, { text: 'Done.' }], otherwise: { text: 'Yes.' } });
  const chat = desk.chat(UNASKED, { columns: 100 });
  await chat.types('go', KEYS.enter);
  await chat.shows('▸ shell');
  chat.press(`/model openai/any${KEYS.enter}`);
  chat.press(`and now?${KEYS.enter}`);
  await chat.shows('queued after the turn: and now?');
  await writeFile(join(desk.cwd, 'go'), '');
  await chat.shows('Yes.');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.server.requests.map(({ path }) => path), desk.asked(3).at(-1)]).toEqual([
    0,
    ['/v1/messages', '/v1/messages', '/v1/responses'],
    'user: and now?',
  ]);
});

test('two messages in one chunk of keys are both sent', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const chat = desk.chat();
  await chat.types(`one${KEYS.enter}two${KEYS.enter}`);
  await desk.server.received(2);
  await chat.prompted();
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const body = desk.server.requests.at(-1)?.body as { readonly messages: readonly unknown[] } | undefined;
  expect(JSON.stringify(body?.messages)).toMatch(/one.*two/);
});

test('output of a running call is live, and Ctrl-O shows all of the last one', async () => {
  const lines = 'for i in 1 2 3 4 5 6 7 8; do echo line $i; done; until [ -e go ]; do sleep 0.05; done';
  const desk = await ChatDesk.with({
    answers: [{ calls: [{ name: 'shell', args: { command: lines } }] }, { text: 'Ran it.' }],
  });
  const chat = desk.chat(UNASKED);
  await chat.types('run it', KEYS.enter);
  await chat.shows('line 8');
  expect((await chat.terminal.everything()).filter((line) => /^ {6}line/.test(line))).toHaveLength(5);
  chat.press(KEYS.ctrlO);
  await chat.shows('      line 1\n');
  await writeFile(join(desk.cwd, 'go'), '');
  await chat.shows('Ran it.');
  await chat.types(KEYS.ctrlO);
  await chat.shows('      line 1\n');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
});
