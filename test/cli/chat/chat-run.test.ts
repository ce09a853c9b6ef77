// /run: a chat hands its conversation to a run, and gets its report back.

import type { Answer, Script } from '@drover/rehearsal/script';
import { expect, test, vi } from 'vitest';
import { planned, RunDesk, says, submits, writes } from '../../support/run/run-desk.ts';
import { Chatting, KEYS } from './chat-desk.ts';

vi.setConfig({ testTimeout: 120_000 });

/** A chat in the repository of a desk. */
export function chatAt(desk: RunDesk, args: readonly string[] = [], env: Record<string, string> = {}): Chatting {
  const all = {
    HOME: desk.folder,
    DROVER_HOME: desk.home,
    NO_COLOR: '1',
    ANTHROPIC_API_KEY: 'a-test-key',
    ANTHROPIC_BASE_URL: desk.server.url,
    ...env,
  };
  const model = args.includes('--continue') ? [] : ['--model', 'anthropic/claude-sonnet-4-5'];
  return new Chatting(['chat', ...model, '--sandbox', 'off', ...args], desk.repository, all, 100);
}

const USAGE = { input: 1_000, output: 100 };

/** A chat, a coordinator and a worker that writes a file. */
function handingOver(tasks: Parameters<typeof planned>[0] = TASKS): Script {
  const { answers: [plan] = [], agents = {} } = planned(tasks);
  return {
    order: 'conversation',
    answers: [
      { when: { text: 'You coordinate' }, ...(plan as Answer) },
      { when: { tool: 'submit_plan' }, ...says('The coordinator is done.') },
      { when: { text: 'look at the parser' }, text: 'I read the parser: it is slow.', usage: USAGE },
    ],
    otherwise: { ...says('As the report says.'), usage: USAGE },
    agents,
  };
}

const TASKS = { alpha: { answers: [writes('made.txt', 'made\n'), submits('I made it.')] } };

/** The text of all messages of a request. */
function textOf(body: unknown): string {
  return JSON.stringify((body as { readonly messages: unknown }).messages);
}

test('/run hands the conversation to a run, and its report comes back', async () => {
  const desk = await RunDesk.with(handingOver());
  const chat = chatAt(desk);
  await chat.says('look at the parser');
  await chat.says('!echo a note of mine');
  await chat.types('/run make it fast', KEYS.enter);
  await chat.shows('[y] run');
  chat.press('y');
  await chat.shows('the agent reads the report of run');
  await chat.says('and now?');
  await chat.says('/cost');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const asked = desk.server.requests.map(({ body }) => textOf(body));
  // The coordinator and its worker begin with the conversation.
  for (const text of asked.slice(1, 5))
    expect(text).toMatch(/look at the parser.*it is slow.*a note of mine.*make it fast/);
  expect(asked.at(-1)).toMatch(/it is slow.*with the goal: make it fast.*1 of 1 task landed.*and now\?/);
  const screen = (await chat.screen()).join('\n');
  expect(screen).toMatch(/✓ done {2}1 of 1 task landed/);
  expect(screen).toContain('As the report says.');
});
