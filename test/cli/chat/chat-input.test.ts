// Input of a chat: long pastes, files, commands, images, history, and how a chat is continued.

import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChatDesk, KEYS } from './chat-desk.ts';

const BROKEN = JSON.stringify({ type: 'error', error: { type: 'api_error', message: 'Internal server error' } });
// The API asks for a longer pause than drover waits, so the turn ends at once.
const FAILING = { status: 500, contentType: 'application/json', headers: { 'retry-after': '300' }, body: BROKEN };
const YES = { otherwise: { text: 'Yes.' } };
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

test('a paste of 2,000 lines folds, and the model gets all of it', async () => {
  const desk = await ChatDesk.with(YES);
  const chat = desk.chat();
  const lines = Array.from({ length: 2_000 }, (_, at) => `line ${at}`).join('\n');
  await chat.types(`${KEYS.pasteStart}${lines}${KEYS.pasteEnd}`, ' explain', KEYS.enter);
  await chat.prompted();
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(1)]).toEqual([0, [`user: ${lines} explain`]]);
  expect(await chat.screen()).toContain('❯ [pasted 2000 lines] explain');
});

test('@ completes a path that is not ignored', async () => {
  const desk = await ChatDesk.with(YES);
  await writeFile(join(desk.cwd, '.gitignore'), 'ignored-name.ts\n');
  for (const name of ['worker-test.ts', 'ignored-name.ts', 'other.md']) await writeFile(join(desk.cwd, name), '');
  const chat = desk.chat();
  await chat.types('see @wktst');
  await chat.shows('▸ @worker-test.ts');
  chat.press(KEYS.tab);
  chat.press('@ignored');
  await chat.shows('❯ see @worker-test.ts @ignored');
  chat.press(KEYS.enter);
  await chat.shows('Yes.');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(1)]).toEqual([0, ['user: see @worker-test.ts @ignored']]);
});

test('! runs a command, and its output goes to the user and to the model', async () => {
  const desk = await ChatDesk.with(YES);
  const chat = desk.chat(['--sandbox', 'off']);
  await chat.says('!echo seen; exit 3');
  await chat.says('what was that?');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(1)]).toEqual([
    0,
    ['user: [The user ran a command in the folder: echo seen; exit 3]\nseen\n[exit code 3] | what was that?'],
  ]);
  expect(await chat.screen()).toEqual(expect.arrayContaining(['seen', '  exit code 3']));
});

test('output of a ! command and a note of /undo reach the model after /model too', async () => {
  const write = { calls: [{ name: 'write', args: { path: 'a.txt', content: 'a' } }] };
  const desk = await ChatDesk.with({ answers: [write, { text: 'Done.' }], otherwise: YES.otherwise });
  const chat = desk.chat(['--sandbox', 'off', '--model', 'anthropic/any', '--yes'], { columns: 100 });
  for (const text of ['write it', '/undo', '!echo seen', '/model openai/any', 'and now?']) await chat.says(text);
  for (const text of ['!echo old', '/clear', 'anew']) await chat.says(text);
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(3).at(-1), desk.asked(4)]).toEqual([
    0,
    expect.stringMatching(/^user: \[The user has undone [^|]*a\.txt\] \| \[The user ran [^|]*seen[^|]*\| and now\?$/),
    ['user: anew'],
  ]);
});

test('an address of another machine and a pipe are not images, and stay text', async () => {
  const desk = await ChatDesk.with(YES);
  execFileSync('mkfifo', [join(desk.cwd, 'pipe.png')]);
  const chat = desk.chat(['--model', 'anthropic/any']);
  await chat.says('file://elsewhere/x.png');
  await chat.says('what is in @pipe.png');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(2)]).toEqual([
    0,
    ['user: file://elsewhere/x.png', 'assistant: Yes.', 'user: what is in @pipe.png'],
  ]);
});

test('an image named by its path goes to the model', async () => {
  const desk = await ChatDesk.with(YES);
  await writeFile(join(desk.cwd, 'pixel.png'), Buffer.from(PIXEL, 'base64'));
  const chat = desk.chat();
  await chat.types('look at @pixel.png please', KEYS.enter);
  await chat.prompted();
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(1)]).toEqual([0, ['user: look at @pixel.png please | image']]);
});

test('Ctrl-R finds a message of another chat, and --continue resumes the newest', async () => {
  const desk = await ChatDesk.with(YES);
  const first = desk.chat();
  await first.says('remember the alamo');
  await first.types(KEYS.ctrlD);
  await first.code;
  const second = desk.chat();
  await second.types(KEYS.ctrlR, 'alam');
  await second.shows('❯ remember the alamo');
  second.press(KEYS.enter);
  second.press(KEYS.ctrlC);
  await second.types(KEYS.ctrlD);
  await second.code;
  const third = desk.chat(['--continue']);
  await third.says('go on');
  await third.types(KEYS.ctrlD);
  expect([await third.code, desk.asked(2)]).toEqual([
    0,
    ['user: remember the alamo', 'assistant: Yes.', 'user: go on'],
  ]);
});

test('--resume offers the sessions of the folder; --continue without one is refused', async () => {
  const desk = await ChatDesk.with(YES);
  const none = desk.chat(['--continue']);
  expect([await none.code, none.errors.includes('has no session to continue')]).toEqual([2, true]);
  for (const name of ['alpha', 'bravo']) {
    const chat = desk.chat(['--session', name, '--model', 'anthropic/any']);
    await chat.says(`this is ${name}`);
    await chat.types(KEYS.ctrlD);
    await chat.code;
  }
  const chat = desk.chat(['--resume']);
  await chat.shows('session to resume');
  chat.press('alpha');
  await chat.shows('session to resume: alpha');
  chat.press(KEYS.enter);
  await chat.says('more');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(3)[0]]).toEqual([0, 'user: this is alpha']);
});

test('a turn that an API error ends is continued with its whole history', async () => {
  const desk = await ChatDesk.with({
    answers: [
      { calls: [{ name: 'read', args: { path: 'auth.go' } }] },
      { calls: [{ name: 'edit', args: { path: 'auth.go', old: 'old', new: 'new' } }] },
      { raw: FAILING },
      { text: 'Refactored.' },
    ],
  });
  await writeFile(join(desk.cwd, 'auth.go'), 'old\n');
  const chat = desk.chat();
  await chat.says('refactor the auth module');
  await chat.says('continue');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect((await chat.screen()).join('\n')).toMatch(/✗ incomplete/);
  expect(desk.asked(4)).toEqual([
    'user: refactor the auth module',
    'assistant: tool_use',
    'user: tool_result',
    'assistant: tool_use',
    'user: tool_result | continue',
  ]);
});

test('a resumed chat shows its last turn as Markdown, and the words of the user alone', async () => {
  const desk = await ChatDesk.with({ answers: [{ text: '| a | b |\n|---|---|\n| 1 | **2** |' }] });
  const first = desk.chat(['--session', 'table', '--model', 'anthropic/any']);
  await first.says('!echo noted');
  await first.says('a table, please');
  await first.types(KEYS.ctrlD);
  await first.code;
  const again = desk.chat(['--session', 'table']);
  await again.prompted();
  const screen = (await again.screen()).join('\n');
  expect(screen).toContain('❯ a table, please\n\na │ b\n──┼──\n1 │ 2\n');
  expect(screen).not.toContain('noted');
  await again.types(KEYS.up);
  await again.shows('❯ a table, please\nmode');
  again.press(KEYS.up);
  await again.shows('❯ !echo noted');
  again.press(KEYS.ctrlU);
  await again.types(KEYS.ctrlD);
  expect(await again.code).toBe(0);
});
