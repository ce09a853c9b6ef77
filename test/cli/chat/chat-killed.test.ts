// A chat that is killed, and continued: what the user sees, and what the model is told.

import { expect, test, vi } from 'vitest';
import { ChatDesk, KEYS } from './chat-desk.ts';
import { MortalChat } from './mortal-chat.ts';

vi.setConfig({ testTimeout: 60_000 });

const ARGV = ['chat', '--model', 'anthropic/any', '--yes', '--sandbox', 'off'];

test('a chat that was killed in an answer is continued with --continue', async () => {
  const long = { text: `A long answer begins. ${'word '.repeat(400)}`, tokensPerSecond: 40 };
  const desk = await ChatDesk.with({ answers: [{ text: 'Hello.' }, long, { text: 'Here I am again.' }] });
  const killed = new MortalChat(ARGV, desk);
  await killed.printed('❯');
  killed.press(`hi${KEYS.enter}`);
  await killed.printed('✓ done');
  killed.press(`tell me more${KEYS.enter}`);
  await killed.printed('A long answer begins.');
  await killed.kill();
  const chat = desk.chat(['--continue']);
  await chat.says('are you there?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const screen = (await chat.screen()).join('\n');
  expect(screen).toContain('❯ tell me more');
  expect(screen).toContain('Here I am again.');
  expect(desk.asked(3)).toEqual(['user: hi', 'assistant: Hello.', 'user: tell me more | are you there?']);
});

test('a command that was running when a chat was killed is uncertain to the model', async () => {
  const command = { calls: [{ name: 'shell', args: { command: 'echo begun; sleep 30' } }] };
  const desk = await ChatDesk.with({ answers: [command, { text: 'I look what came of it.' }] });
  const killed = new MortalChat(ARGV, desk);
  await killed.printed('❯');
  killed.press(`run it${KEYS.enter}`);
  await killed.printed('begun');
  await killed.kill();
  const chat = desk.chat(['--continue']);
  await chat.says('go on');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(desk.asked(2)).toEqual(['user: run it', 'assistant: tool_use', 'user: tool_result | go on']);
  expect(JSON.stringify(desk.server.requests[1]?.body)).toContain('UNCERTAIN');
});
