// Undo in a chat, its modes, and diffs before approval.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sessionTools } from '@drover/core/tools/builtin';
import { expect, test } from 'vitest';
import { UndoLog } from '../../../bin/chat/undo/undo-log.ts';
import { temporaryFolder } from '../fake-io.ts';
import { ChatDesk, KEYS } from './chat-desk.ts';

const write = (path: string, content: string) => ({ calls: [{ name: 'write', args: { path, content } }] });
const DONE = { text: 'Done.' };

test('/undo restores the bytes of three turns, the last one after a restart', async () => {
  const command = {
    calls: [{ name: 'shell', args: { command: 'printf changed > a.txt; rm b.txt; echo new > c.txt' } }],
  };
  const desk = await ChatDesk.with({
    answers: [write('a.txt', 'one\n'), DONE, write('.env', 'KEY=2\n'), DONE, command, DONE],
  });
  const bytes = Buffer.from('first\r\nsecond\r\n\u00ff', 'latin1');
  await writeFile(join(desk.cwd, 'a.txt'), bytes);
  await writeFile(join(desk.cwd, 'b.txt'), 'b');
  await writeFile(join(desk.cwd, '.gitignore'), '.env\n');
  const chat = desk.chat(['--session', 'undo', '--model', 'anthropic/any', '--yes', '--sandbox', 'off']);
  for (const text of ['one', 'two', 'three', '/undo', '/undo']) await chat.says(text);
  const read = (name: string) => readFile(join(desk.cwd, name), 'utf8');
  expect([await read('a.txt'), await read('b.txt'), existsSync(join(desk.cwd, 'c.txt'))]).toEqual([
    'one\n',
    'b',
    false,
  ]);
  expect(existsSync(join(desk.cwd, '.env'))).toBe(false);
  await chat.types(KEYS.ctrlD);
  await chat.code;
  const again = desk.chat(['--session', 'undo']);
  await again.says('/undo');
  await again.says('/undo');
  await again.says('/diff');
  await again.types(KEYS.ctrlD);
  expect(await again.code).toBe(0);
  expect((await readFile(join(desk.cwd, 'a.txt'))).equals(bytes)).toBe(true);
  const text = (await again.screen()).join('\n');
  expect(text).toContain('there is no turn to undo that changed files');
  expect(text).toContain('this session has changed no files');
});

test('a turn that a kill cut off can be undone in the next process', async () => {
  const cwd = await temporaryFolder();
  const place = { cwd, env: {}, ignore: [] };
  await writeFile(join(cwd, 'a.txt'), 'before\n');
  const log = await UndoLog.open(join(cwd, '.undo'), place);
  const write = sessionTools.find(({ name }) => name === 'write');
  if (write === undefined) throw new Error('there is no tool write');
  log.begin();
  await log.before(write, { path: 'a.txt', content: 'during\n' });
  await writeFile(join(cwd, 'a.txt'), 'during\n');

  const next = await UndoLog.open(join(cwd, '.undo'), place);
  expect(await next.undo()).toEqual(['a.txt']);
  expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe('before\n');
});

test('/undo reverts a turn that a compaction has summarized', async () => {
  const summary = { when: { system: 'condense the history' }, text: 'Much was said.' };
  const long = { text: 'Yes, and much more. '.repeat(20) };
  const desk = await ChatDesk.with({ answers: [summary, write('a.txt', 'agent\n'), long], otherwise: long });
  await writeFile(join(desk.cwd, 'a.txt'), 'before\n');
  const chat = desk.chat(['--session', 'short', '--model', 'anthropic/any', '--yes']);
  for (const text of ['write', 'two', 'three', '/compact', '/undo', 'four']) await chat.says(text);
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, await readFile(join(desk.cwd, 'a.txt'), 'utf8')]).toEqual([0, 'before\n']);
  const { status, body } = desk.server.requests.at(-1) ?? {};
  expect([status, JSON.stringify(body)]).toEqual([
    200,
    expect.stringMatching(/Much was said.*has undone the changes.*four/),
  ]);
});

test('/undo refuses if a file has changed since the turn, and changes nothing', async () => {
  const desk = await ChatDesk.with({ answers: [write('a.txt', 'agent\n'), DONE] });
  await writeFile(join(desk.cwd, 'a.txt'), 'before\n');
  const chat = desk.chat([], { columns: 120 });
  await chat.says('write');
  await writeFile(join(desk.cwd, 'a.txt'), 'mine\n');
  await chat.says('/undo');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, await readFile(join(desk.cwd, 'a.txt'), 'utf8')]).toEqual([0, 'mine\n']);
  expect((await chat.screen()).join('\n')).toContain('nothing was undone: changed since that turn: a.txt');
});

test('ask mode shows a numbered diff before it asks; read-only mode denies', async () => {
  const edit = { calls: [{ name: 'edit', args: { path: 'a.txt', old: 'two', new: 'TWO' } }] };
  const desk = await ChatDesk.with({ answers: [edit, DONE, edit, DONE] });
  await writeFile(join(desk.cwd, 'a.txt'), 'one\ntwo\n');
  const chat = desk.chat(['--yes']);
  await chat.types(KEYS.shiftTab);
  await chat.shows('mode: read only');
  await chat.says('change it');
  expect(await readFile(join(desk.cwd, 'a.txt'), 'utf8')).toBe('one\ntwo\n');
  await chat.types(KEYS.shiftTab);
  await chat.shows('mode: ask');
  await chat.types('change it', KEYS.enter);
  await chat.shows('[a]lways:');
  const lines = await chat.terminal.everything();
  expect(lines).toEqual(expect.arrayContaining(['      1  one', '      2 -two', '      2 +TWO']));
  chat.press(`y${KEYS.enter}`);
  await chat.prompted();
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, await readFile(join(desk.cwd, 'a.txt'), 'utf8')]).toEqual([0, 'one\nTWO\n']);
});
