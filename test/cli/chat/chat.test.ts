// drover chat: messages, questions, interruptions, and how the user leaves.

import { existsSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { ChatDesk, KEYS } from './chat-desk.ts';
import { drover } from '../fake-io.ts';

const touch = { calls: [{ name: 'shell', args: { command: 'touch made && echo done' } }] };
const look = { calls: [{ name: 'list', args: { path: '.' } }] };
const NEVER = { text: 'too late', delayMs: 600_000 };

test('messages are answered in order, and leaving prints how to resume', async () => {
  const desk = await ChatDesk.with({ answers: [look, { text: 'Nothing is here.' }, { text: 'Nothing at all.' }] });
  const chat = desk.chat(['--session', 'docs', '--model', 'anthropic/any']);
  await chat.says('what is here?');
  await chat.says('really?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect((await chat.screen()).map((line) => line.replace(desk.cwd, '<cwd>'))).toEqual([
    'drover anthropic/any in <cwd>',
    '',
    '❯ what is here?',
    '',
    '  ▸ list: .',
    '  ✓ <time>  .drover/',
    '',
    'Nothing is here.',
    '',
    '✓ done  <time> · <tokens>',
    '',
    '❯ really?',
    '',
    'Nothing at all.',
    '',
    '✓ done  <time> · <tokens>',
    '',
    '❯',
    '',
    'the session is saved; continue with: drover chat --session docs',
  ]);
  expect(desk.asked(3)).toEqual([
    'user: what is here?',
    'assistant: tool_use',
    'user: tool_result',
    'assistant: Nothing is here.',
    'user: really?',
  ]);
  const again = desk.chat(['--session', 'docs']);
  await again.types(KEYS.ctrlD);
  expect([await again.code, (await again.screen()).slice(1, 11)]).toEqual([
    0,
    [
      'resuming session docs; its last turn:',
      '',
      '❯ really?',
      '',
      'Nothing at all.',
      '',
      '✓ done  <time> · <tokens>',
      '',
      '❯',
      '',
    ],
  ]);
});

proves('chat.nothing-lost', 'Esc interrupts twice, and the order stays u1 P1 u2 P2 u3', async () => {
  const desk = await ChatDesk.with({ answers: [look, NEVER, look, NEVER, { text: 'All is well.' }] });
  const chat = desk.chat();
  await chat.types('u1', KEYS.enter);
  await desk.server.received(2);
  chat.press(KEYS.escape);
  await chat.shows('work done so far is kept; say what to do next');
  await chat.types('u2', KEYS.enter);
  await desk.server.received(4);
  chat.press(KEYS.escape);
  await chat.types('u3', KEYS.enter);
  await chat.shows('All is well.');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const turn = (text: string): readonly string[] => [`user: ${text}`, 'assistant: tool_use'];
  expect(desk.asked(5)).toEqual([
    ...turn('u1'),
    'user: tool_result | u2',
    'assistant: tool_use',
    'user: tool_result | u3',
  ]);
  expect(desk.server.rejections).toBe(0);
});

test('an interrupted answer is kept and marked as cut off, and the model is told', async () => {
  const desk = await ChatDesk.with({
    answers: [look, { text: 'word '.repeat(500), tokensPerSecond: 50 }, { text: 'Here I am.' }],
  });
  const chat = desk.chat(['--session', 'half', '--model', 'anthropic/any']);
  await chat.types('begin', KEYS.enter);
  await chat.shows('word word');
  chat.press(KEYS.ctrlC);
  await chat.shows('the answer above was cut off; it is kept as far as it came');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const again = desk.chat(['--session', 'half']);
  await again.says('go on');
  await again.types('/quit', KEYS.enter);
  expect(await again.code).toBe(0);
  const [begin, call, result, half, next] = desk.asked(3);
  expect([begin, call, result]).toEqual(['user: begin', 'assistant: tool_use', 'user: tool_result']);
  expect(half).toMatch(/^assistant: word word[word ]*$/);
  expect(next).toBe(
    'user: [Your answer above was interrupted before it was complete. The user saw it as far as it came.] | go on',
  );
  // A resumed chat and `drover show` both have the text and the mark.
  const shown = (await drover(['show', 'half'], { cwd: desk.cwd, env: desk.env })).stdout;
  for (const text of [shown, (await again.screen()).join('\n')]) {
    expect(text).toMatch(/word word/);
    expect(text).toContain('the answer above was cut off');
  }
});

test.each([
  ['y', '  ✓ allowed', true],
  ['n', '  ✗ not allowed: you said no', false],
])('a question is asked in place, and %s answers it', async (key, line, isMade) => {
  const desk = await ChatDesk.with({ answers: [touch, { text: 'So be it.' }] });
  const chat = desk.chat();
  await chat.types('touch it', KEYS.enter);
  await chat.shows('[a]lways:');
  chat.press(key);
  chat.press(KEYS.enter);
  await chat.shows('So be it.');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(await chat.screen()).toEqual(
    expect.arrayContaining([`  Allow shell: touch made && echo done? [y]es [n]o [a]lways: ${key}`, line]),
  );
  expect(existsSync(join(desk.cwd, 'made'))).toBe(isMade);
});

test('always holds for the rest of the chat, across models and sessions', async () => {
  const desk = await ChatDesk.with({
    answers: [touch, { text: 'One.' }, touch, { text: 'Two.' }, touch, { text: 'Three.' }],
  });
  const chat = desk.chat();
  await chat.types('first', KEYS.enter);
  await chat.shows('[a]lways:');
  chat.press('a');
  chat.press(KEYS.enter);
  await chat.shows('One.');
  await chat.says('/model openai/any');
  await chat.says('second');
  await chat.says('/clear');
  await chat.says('third');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const text = (await chat.screen()).join('\n');
  expect([text.match(/Allow shell/g)?.length, text.includes('Two.'), text.includes('Three.')]).toEqual([1, true, true]);
});

test('/resume with a name moves the chat to that session', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const first = desk.chat(['--session', 'first', '--model', 'anthropic/any']);
  await first.says('alpha');
  await first.types(KEYS.ctrlD);
  await first.code;
  const chat = desk.chat(['--session', 'second', '--model', 'anthropic/any']);
  for (const text of ['beta', '/resume first', 'gamma']) await chat.says(text);
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.asked(3)]).toEqual([0, ['user: alpha', 'assistant: Yes.', 'user: gamma']]);
});

test('Esc withdraws a question, and the command does not run', async () => {
  const desk = await ChatDesk.with({ answers: [touch, { text: 'Never mind.' }] });
  const chat = desk.chat();
  await chat.types('touch it', KEYS.enter);
  await chat.shows('[a]lways:');
  chat.press(KEYS.escape);
  await chat.shows('say what to do next');
  await chat.says('forget it');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect([existsSync(join(desk.cwd, 'made')), desk.asked(2)]).toEqual([
    false,
    ['user: touch it', 'assistant: tool_use', 'user: tool_result | forget it'],
  ]);
});

test('text typed while the agent works is neither sent nor an answer: it is a draft', async () => {
  const desk = await ChatDesk.with({ answers: [{ ...touch, delayMs: 300 }, { text: 'So be it.' }, { text: 'Yes?' }] });
  const chat = desk.chat();
  await chat.types('touch it', KEYS.enter);
  await desk.server.received(1);
  chat.press(`y${KEYS.enter}`);
  await chat.shows('[a]lways:');
  chat.press(`n${KEYS.enter}`);
  await chat.shows('❯ y');
  chat.press(KEYS.enter);
  await chat.shows('Yes?');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, existsSync(join(desk.cwd, 'made')), desk.asked(3).at(-1)]).toEqual([0, false, 'user: y']);
});

test('lines that wait for the end of the turn become separate messages', async () => {
  const wait = { calls: [{ name: 'shell', args: { command: 'until [ -e go ]; do sleep 0.05; done' } }] };
  const desk = await ChatDesk.with({ answers: [wait, { text: 'First.' }, { text: 'Second.' }, { text: 'Third.' }] });
  const chat = desk.chat(['--yes', '--sandbox', 'off']);
  await chat.types('one', KEYS.enter);
  await chat.shows('▸ shell');
  chat.press(`${KEYS.tab}two${KEYS.enter}three${KEYS.ctrlJ}lines${KEYS.enter}fo`);
  await chat.shows('queued after the turn: three lines');
  await chat.shows('❯ fo');
  await writeFile(join(desk.cwd, 'go'), '');
  await chat.shows('Third.');
  await chat.terminal.until((text) => text.endsWith('❯ fo\nmode: edit (Shift-Tab)'));
  chat.press(KEYS.ctrlC);
  await chat.types(KEYS.ctrlD);
  const said = ['assistant: First.', 'user: two', 'assistant: Second.', 'user: three\nlines'];
  expect([await chat.code, desk.asked(4).slice(-4)]).toEqual([0, said]);
  expect(await chat.screen()).toEqual(expect.arrayContaining(['❯ two', '❯ three', '  lines']));
});

test('lines typed before Esc return to the prompt one by one', async () => {
  const desk = await ChatDesk.with({ answers: [NEVER, { text: 'Third.' }] });
  const chat = desk.chat();
  await chat.types('one', KEYS.enter);
  await desk.server.received(1); // before that, a message would be delivered with the first
  chat.press(`two${KEYS.enter}three${KEYS.enter}`);
  await chat.shows('queued at the next step: three');
  chat.press(KEYS.escape);
  await chat.shows('❯ two');
  chat.press(KEYS.ctrlC);
  await chat.shows('❯ three');
  chat.press(KEYS.enter);
  await chat.shows('Third.');
  await chat.types(KEYS.ctrlD);
  expect([await chat.code, desk.server.requests.length, desk.asked(2).at(-1)]).toEqual([0, 2, 'user: one | three']);
});

test('Ctrl-C at the prompt clears the draft, then explains how to leave, then leaves', async () => {
  const desk = await ChatDesk.with({});
  const chat = desk.chat();
  await chat.types('never mind');
  await chat.shows('never mind');
  chat.press(KEYS.ctrlC);
  await chat.prompted();
  chat.press(KEYS.ctrlC);
  await chat.shows('Ctrl-C once more leaves');
  chat.press('x');
  chat.press(KEYS.ctrlU);
  chat.press(KEYS.ctrlC);
  await chat.shows('Ctrl-C once more leaves');
  chat.press(KEYS.ctrlC);
  expect([await chat.code, desk.server.requests.length]).toEqual([130, 0]);
  // A chat without messages leaves no files.
  expect(existsSync(join(desk.home, 'sessions'))).toBe(false);
});

test('a second Ctrl-C leaves at once, whatever the agent is doing', async () => {
  const stubborn = { calls: [{ name: 'shell', args: { command: "trap '' TERM; echo begun > begun; sleep 600" } }] };
  const desk = await ChatDesk.with({ answers: [stubborn, NEVER] });
  const chat = desk.chat(['--yes']);
  await chat.types('hang', KEYS.enter);
  await chat.shows('▸ shell');
  chat.press(KEYS.ctrlC);
  chat.press(KEYS.ctrlC);
  expect(await chat.code).toBe(130);
  expect(chat.modes).toEqual([true, false]);
  expect((await chat.screen()).at(-1)).toMatch(/^ {2}drover chat --session|continue with: drover chat --session/);
});

test.each<[StopName, number]>([
  ['SIGTERM', 143],
  ['SIGHUP', 143],
  ['SIGINT', 130],
])('%s ends the chat in a turn or at the prompt and restores the terminal', async (cause, code) => {
  const desk = await ChatDesk.with({ answers: [NEVER] });
  const idle = desk.chat();
  await idle.prompted();
  idle.stop(cause);
  const busy = desk.chat(['--session', 'busy', '--model', 'anthropic/any']);
  await busy.types('hang', KEYS.enter);
  await desk.server.received(1);
  busy.stop(cause);
  expect([await idle.code, await busy.code, idle.modes, busy.modes]).toEqual([
    code,
    code,
    [true, false],
    [true, false],
  ]);
  await busy.screen();
  expect(busy.terminal.raw.endsWith('\u001B[?2004l')).toBe(true);
});

type StopName = 'SIGTERM' | 'SIGHUP' | 'SIGINT';

test('closing the terminal ends the chat', async () => {
  const desk = await ChatDesk.with({ answers: [NEVER] });
  const chat = desk.chat();
  await chat.prompted();
  chat.hangUp();
  expect(await chat.code).toBe(0);
});

test('chat without a terminal points to drover exec', async () => {
  const stderr =
    'drover: drover chat needs a terminal; drover exec "…" --session NAME sends one message without a terminal\n';
  expect(await drover(['chat', '--model', 'anthropic/any'])).toEqual({ code: 2, stdout: '', stderr });
  const desk = await ChatDesk.with({});
  const dumb = desk.chat([], { env: { TERM: 'dumb' } });
  expect([await dumb.code, dumb.modes, dumb.errors.includes('that can move its cursor')]).toEqual([2, [], true]);
});

test('a session open in another process is refused, and the terminal is untouched', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Yes.' } });
  const chat = desk.chat(['--session', 'one', '--model', 'anthropic/any']);
  await chat.says('hello');
  const second = desk.chat(['--session', 'one']);
  expect([await second.code, second.modes]).toEqual([2, []]);
  expect(second.errors).toContain('is writing');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(readdirSync(join(desk.home, 'sessions'))).toEqual(['one']);
});
