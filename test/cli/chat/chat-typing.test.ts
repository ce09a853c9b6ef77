// Typing in a chat: several lines, pasted text, history, slash commands; and control sequences kept from the screen.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChatDesk, KEYS } from './chat-desk.ts';
import { drover } from '../fake-io.ts';

const SUMMARY = { when: { system: 'condense the history' }, text: 'Much was said.' };

test.each<[string, readonly string[], string]>([
  ['a \\ at the end of a line', ['one\\', KEYS.enter, 'two', KEYS.enter], 'one\ntwo'],
  ['Alt-Enter', ['one', KEYS.altEnter, 'two', KEYS.enter], 'one\ntwo'],
  ['Ctrl-J', ['one', KEYS.ctrlJ, 'two', KEYS.enter], 'one\ntwo'],
  [
    'a paste with line breaks, tabs and control sequences',
    [`${KEYS.pasteStart}all:\r\n\tmake\u001B[31m x\rend${KEYS.pasteEnd}`, '!', KEYS.enter],
    'all:\n\tmake x\nend!',
  ],
  ['what is mended before it is sent', ['tow', KEYS.left, KEYS.left, 'X', KEYS.ctrlU, 't', KEYS.enter], 'tow'],
  ['letters that take more than one code', ['👩‍👩‍👧é', '\u007F', '\u007F', 'ok', KEYS.enter], 'ok'],
  ['Backspace, which removes one character', ['one two', '\u007F', KEYS.enter], 'one tw'],
  ['Alt-Backspace, which removes a word', ['one two', '\u001B\u007F', 'ten', KEYS.enter], 'one ten'],
  ['Alt-B and Alt-D, by words', ['one two', '\u001Bb', '\u001Bd', 'ten', KEYS.enter], 'one ten'],
  ['a message that begins with a path', ['/tmp/x is full', KEYS.enter], '/tmp/x is full'],
  ['a message that begins with a slash behind a space', [' /usage is odd', KEYS.enter], ' /usage is odd'],
])('%s: the sent text is the intended one', async (_, keys, sent) => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const chat = desk.chat();
  await chat.types(...keys);
  await chat.shows('Yes.');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(1)]).toEqual([0, [`user: ${sent}`]]);
});

test('up and down recall messages of this chat, of the last one, and the draft', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const first = desk.chat(['--session', 'docs', '--model', 'anthropic/any']);
  await first.says('alpha');
  await first.types(KEYS.ctrlD);
  await first.code;
  const chat = desk.chat(['--session', 'docs']);
  await chat.says('beta');
  await chat.types('gam', KEYS.up, KEYS.up, KEYS.up, KEYS.down, KEYS.down, 'ma', KEYS.enter);
  await chat.prompted();
  await chat.types(KEYS.up, KEYS.up, KEYS.up, KEYS.enter);
  await chat.prompted();
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(4).filter((line) => line.startsWith('user'))]).toEqual([
    0,
    ['user: alpha', 'user: beta', 'user: gamma', 'user: alpha'],
  ]);
});

test('/clear starts an empty session and keeps the old one with its pending calls', async () => {
  const look = { calls: [{ name: 'list', args: { path: '.' } }] };
  const desk = await ChatDesk.with({ answers: [look, { text: 'late', delayMs: 600_000 }, { text: 'New.' }] });
  const chat = desk.chat(['--session', 'docs', '--model', 'anthropic/any'], { columns: 100 });
  await chat.types('old', KEYS.enter);
  await desk.server.received(2);
  chat.press(KEYS.escape);
  await chat.says('/clear');
  await chat.says('new');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(3)]).toEqual([0, ['user: new']]);
  expect(await chat.screen()).toEqual(
    expect.arrayContaining([
      'started a new session; resume the previous one with: drover chat --session docs',
      'the session is saved; continue with: drover chat --session docs-2',
    ]),
  );
  // Either conversation can be resumed with its messages.
  const given = { cwd: desk.cwd, env: desk.env };
  const turns = async (name: string): Promise<readonly unknown[]> => {
    const shown = JSON.parse((await drover(['show', name, '--json'], given)).stdout) as Record<string, unknown>;
    return [shown['title'], shown['state'], shown['messages']];
  };
  expect([await turns('docs'), await turns('docs-2')]).toEqual([
    ['old', 'incomplete', 3],
    ['new', 'done', 2],
  ]);
});

test('/model changes the model from the next message and keeps the history', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const chat = desk.chat([], { columns: 100 });
  await chat.says('first');
  await chat.says('/model opnai/any');
  await chat.says('/model openai-chat/any');
  await chat.types('/model', KEYS.enter);
  await chat.shows('Enter takes it');
  chat.press(KEYS.escape);
  await chat.says('second');
  await chat.types(KEYS.ctrlD);
  const text = (await chat.screen()).join('\n');
  expect([await chat.code, desk.server.requests.map(({ path }) => path), desk.asked(2).slice(-3)]).toEqual([
    0,
    ['/v1/messages', '/v1/chat/completions'],
    ['user: first', 'assistant: Yes.', 'user: second'],
  ]);
  expect(text).toContain("! there is no provider 'opnai'");
  expect(text).toContain('openai-chat/any is asked; /model provider/name asks another');
});

test('/model offers a provider that the config redefines only once', async () => {
  const desk = await ChatDesk.with({});
  await mkdir(join(desk.cwd, '.config/drover'), { recursive: true });
  const provider = `{api: anthropic, baseUrl: "${desk.server.url}", keyEnv: ANTHROPIC_API_KEY}`;
  await writeFile(
    join(desk.cwd, '.config/drover/config.yaml'),
    `providers: {anthropic: ${provider}, near: ${provider}}`,
  );
  const chat = desk.chat([], { columns: 200 });
  await chat.types('/model', KEYS.enter);
  await chat.shows('Enter takes it');
  chat.press(KEYS.escape);
  await chat.types(KEYS.ctrlD);
  expect((await chat.screen()).join('\n')).toContain('asks another (anthropic, openai, openai-chat, near)');
  expect(await chat.code).toBe(0);
});

test('/compact shortens the conversation, and a resumed chat has the short one', async () => {
  const answer = 'Yes, and much more. '.repeat(20).trim();
  const desk = await ChatDesk.with({ answers: [SUMMARY], otherwise: { text: answer } });
  const chat = desk.chat(['--session', 'long', '--model', 'anthropic/any']);
  await chat.says('/compact');
  for (const text of ['one', 'two', 'three']) await chat.says(text);
  await chat.says('/compact');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect((await chat.screen()).join('\n')).toContain('there is nothing to shorten yet');
  const again = desk.chat(['--session', 'long']);
  await again.says('four');
  await again.types(KEYS.ctrlD);
  await again.code;
  expect(desk.asked(5)).toEqual([
    'user: one | [What happened before, in short. This is background, not a request.]\n\nMuch was said. | three',
    `assistant: ${answer}`,
    'user: four',
  ]);
});

test('after /model, the new model makes the summary that is due', async () => {
  const long = { text: 'Yes, and much more. '.repeat(600) };
  const desk = await ChatDesk.with({ answers: [SUMMARY], otherwise: long });
  await mkdir(join(desk.cwd, '.config', 'drover'), { recursive: true });
  await writeFile(join(desk.cwd, '.config', 'drover', 'config.yaml'), 'contextTokens: 8500\n');
  const chat = desk.chat();
  for (const text of ['one', 'two', '/model openai/other', 'three']) await chat.says(text);
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const asked = desk.server.requests.map(({ body, status }) => `${(body as { model: string }).model} ${status}`);
  expect(asked).toEqual(['any 200', 'any 200', 'other 200', 'other 200']);
  expect(desk.asked(4)[0]).toMatch(/^user: one.*Much was said/s);
});

test('/compact refuses to make the conversation longer', async () => {
  const desk = await ChatDesk.with({ answers: [SUMMARY], otherwise: { text: 'Yes.' } });
  const chat = desk.chat([], { columns: 120 });
  for (const text of ['one', 'two', 'three', '/compact', 'four']) await chat.says(text);
  await chat.types(KEYS.ctrlD);
  await chat.code;
  expect((await chat.screen()).join('\n')).toContain(
    'could not be shortened: a summary would be longer than what it replaces',
  );
  const said = ['one', 'two', 'three'].flatMap((text) => [`user: ${text}`, 'assistant: Yes.']);
  expect(desk.asked(4)).toEqual([...said, 'user: four']);
});

test('large results don’t end a chat: later messages are answered', async () => {
  const look = { calls: Array.from({ length: 12 }, () => ({ name: 'read', args: { path: 'large.txt' } })) };
  const desk = await ChatDesk.with({
    answers: [SUMMARY, look, look, look, { text: 'Read.' }, { text: 'Still here.' }],
    contextTokens: 200_000,
  });
  await writeFile(join(desk.cwd, 'large.txt'), `${'x'.repeat(99)}\n`.repeat(280));
  const chat = desk.chat();
  await chat.says('read it');
  await chat.says('and?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(await chat.screen()).toEqual(expect.arrayContaining(['Read.', 'Still here.']));
});

test('/tokens and show print estimate, reported tokens, their ratio and the window', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.', usage: { input: 9_000, output: 5 } } });
  const chat = desk.chat(['--session', 'long', '--model', 'anthropic/any'], { columns: 120 });
  for (const text of ['one', '/tokens', '/usage']) await chat.says(text);
  await chat.types(KEYS.ctrlD);
  await chat.code;
  const screen = (await chat.terminal.everything()).join('\n');
  const [, estimate = '', ratio = ''] =
    /estimate ([\d,]+) · reported 9,000 · ratio ([\d.]+) · window 200,000 tokens/.exec(screen) ?? [];
  // The tools alone cost some thousand tokens; system prompt and messages cost a few hundred.
  const tokens = Number(estimate.replaceAll(',', ''));
  expect(tokens).toBeGreaterThan(1_000);
  const used = /about ([\d,]+) of 200,000 tokens/.exec(screen)?.[1]?.replaceAll(',', '');
  expect(Math.abs(Number(used) - tokens * Number(ratio))).toBeLessThan(10);
  const given = { cwd: desk.cwd, env: desk.env };
  expect((await drover(['show', 'long'], given)).stdout).toMatch(
    /prompt +estimate [\d,]+, reported 9,000, ratio [\d.]+, window\s+200,000 tokens/,
  );
  const shown = JSON.parse((await drover(['show', 'long', '--json'], given)).stdout) as Record<string, unknown>;
  expect(shown['tokens']).toMatchObject({ reported: 9_000, ratio: Number(ratio), window: 200_000 });
});

test('/usage counts all usage; the budget covers every session of the chat', async () => {
  const usage = { input: 1_000, output: 50, cacheRead: 0, cacheWrite: 0 };
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.', usage } });
  const chat = desk.chat(['--budget', '21ktok'], { columns: 100 });
  await chat.says('one');
  await chat.says('two');
  await chat.says('/usage');
  await chat.says('/clear');
  await chat.says('/usage');
  for (let at = 0; at < 20; at++) await chat.says('more');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const lines = (await chat.terminal.everything()).map((line) => line.replace(/about [\d,]+ of/, 'about <now> of'));
  expect(lines).toEqual(
    expect.arrayContaining([
      '2,000 tokens in · 100 out; the conversation has about <now> of 200,000 tokens',
      '0 tokens in · 0 out; the conversation has about <now> of 200,000 tokens',
      '✗ error: the budget does not allow another request',
    ]),
  );
  expect(desk.server.requests.length * 1_050).toBeLessThanOrEqual(21_000);
});

test('an unknown slash command is not sent; /help lists them and Tab completes them', async () => {
  const desk = await ChatDesk.with({});
  const chat = desk.chat([], { columns: 80 });
  await chat.says('/modle');
  await chat.says('/fly me');
  await chat.says('/quit now');
  await chat.types('/he', KEYS.tab, KEYS.enter);
  await chat.prompted();
  await chat.types('exit', KEYS.enter);
  expect([await chat.code, desk.server.requests.length]).toEqual([0, 0]);
  const lines = await chat.screen();
  expect(lines.filter((line) => line.startsWith('!'))).toEqual([
    '! there is no /modle; did you mean /model? (a message may begin with a space)',
    '! there is no /fly; /help lists what there is (a message may begin with a space)',
    '! /quit takes nothing further',
  ]);
  expect(lines.filter((line) => /^ {3}\//.test(line)).map((line) => line.trim().split(/\s/, 1)[0])).toEqual([
    '/help',
    '/model',
    '/tokens',
    '/compact',
    '/clear',
    '/sessions',
    '/resume',
    '/diff',
    '/undo',
    '/skill',
    '/cost',
    '/run',
    '/permissions',
    '/exit',
  ]);
});

test('no control sequence of a model, and no unwanted colour, reaches the terminal', async () => {
  const evil = 'safe \u001B]0;owned\u0007\u001B[31mred\u001B[2J\u009B5A text';
  const desk = await ChatDesk.with({ otherwise: { text: evil } });
  const chat = desk.chat([], { env: { NO_COLOR: '1' } });
  await chat.says('hello');
  await chat.types(KEYS.ctrlD);
  await chat.code;
  expect(await chat.screen()).toContain('safe red text');
  // Drover itself moves the cursor, erases lines and marks pastes; it never sends colours here.
  const sequences = chat.terminal.raw.replaceAll('\u001B', '␛').match(/␛(\[[\d;?]*[A-Za-z]|.)|[\u0080-\u009F]/g);
  const strangers = [...new Set(sequences)].filter((each) => !/^␛\[(\d*[ACJK]|\?2004[hl]|\?2026[hl])$/.test(each));
  expect(strangers).toEqual([]);
});

test('a text taller than the screen scrolls inside its box and is sent whole', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const chat = desk.chat([], { columns: 40 });
  const lines = Array.from({ length: 60 }, (_, at) => `line ${at}`);
  await chat.types(lines.join(KEYS.ctrlJ));
  await chat.shows('line 59');
  expect((await chat.terminal.screen()).length).toBeLessThanOrEqual(40);
  chat.press('!');
  chat.press(KEYS.enter);
  await chat.shows('Yes.');
  await chat.types(KEYS.ctrlD);
  await chat.code;
  const shown = await chat.screen();
  const from = shown.indexOf('❯ line 0');
  expect(shown.slice(from, from + 60)).toEqual([
    '❯ line 0',
    ...lines.slice(1, -1).map((line) => `  ${line}`),
    '  line 59!',
  ]);
});

test('Ctrl-Z restores the terminal, and the draft is there after fg', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const chat = desk.chat();
  await chat.types('hel', KEYS.ctrlZ, 'lo', KEYS.enter);
  await chat.shows('Yes.');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, chat.modes, desk.asked(1)]).toEqual([
    0,
    [true, false, 'asleep', true, false],
    ['user: hello'],
  ]);
});

test('rules, config and folder apply in a chat as elsewhere', async () => {
  const call = { calls: [{ name: 'shell', args: { command: 'touch made' } }] };
  const desk = await ChatDesk.with({ answers: [call, { text: 'It is there.' }] });
  execFileSync('mkdir', ['-p', join(desk.cwd, 'inner/.drover')]);
  await writeFile(join(desk.cwd, 'inner/.drover/config.yaml'), 'model: evil/x\n');
  const chat = desk.chat(['--cwd', 'inner', '--allow', 'shell(touch *)']);
  await chat.says('touch it');
  await chat.types(KEYS.ctrlD);
  expect([
    await chat.code,
    existsSync(join(desk.cwd, 'inner/made')),
    chat.errors.includes('may not set model'),
  ]).toEqual([0, true, true]);
});
