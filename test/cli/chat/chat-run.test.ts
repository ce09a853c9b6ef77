// /run: a chat hands its conversation to a run, and gets its report back.

import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Answer, Script } from '@drover/rehearsal/script';
import { SpanFold } from '@drover/telemetry/fold';
import { expect, test, vi } from 'vitest';
import { planned, RunDesk, says, submits, writes } from '../../support/run/run-desk.ts';
import { type KeptRun, readRunState } from '../../../bin/history/run.ts';
import { shortRunId } from '../../../bin/views/report.ts';
import { deskWith, waitsFor } from '../dashboard/operated.ts';
import { Chatting, KEYS } from './chat-desk.ts';
import { MortalChat } from './mortal-chat.ts';

vi.setConfig({ testTimeout: 120_000 });

function envOf(desk: RunDesk): Record<string, string> {
  const model = { ANTHROPIC_API_KEY: 'a-test-key', ANTHROPIC_BASE_URL: desk.server.url };
  return { HOME: desk.folder, DROVER_HOME: desk.home, NO_COLOR: '1', TERM: 'xterm', ...model };
}

/** A chat in the repository of a desk. */
function chatAt(desk: RunDesk, args: readonly string[] = []): Chatting {
  const model = args.includes('--continue') ? [] : ['--model', 'anthropic/claude-sonnet-4-5'];
  return new Chatting(['chat', ...model, '--sandbox', 'off', ...args], desk.repository, envOf(desk), 100);
}

async function listRuns(desk: RunDesk): Promise<readonly KeptRun[]> {
  if (!existsSync(join(desk.home, 'runs'))) return [];
  return Promise.all((await readdir(join(desk.home, 'runs'))).map((id) => readRunState(desk.home, id)));
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

/** The worker waits in a command until the test lets it continue. */
function waitingDesk(): Promise<RunDesk> {
  return deskWith((folder) =>
    handingOver({ alpha: { answers: [waitsFor(folder, 'go'), writes('made.txt', 'made\n'), submits('I made it.')] } }),
  );
}

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
  const [run] = await listRuns(desk);
  // The answers of the chat are in the journal of the run, and no requests of it.
  const fold = new SpanFold({ content: false });
  const spans = (run?.past?.records ?? []).flatMap((record) => fold.take(record)).map(({ name }) => name);
  expect(spans.filter((name) => name === 'chat claude-sonnet-4-5')).toHaveLength(asked.length - 2);
  const screen = (await chat.screen()).join('\n');
  expect(screen).toMatch(/✓ done {2}1 of 1 task landed/);
  expect(screen).toContain('As the report says.');
  // Two requests of the chat, and those of the run.
  expect(Number(/\$([\d.]+); the conversation/.exec((await chat.terminal.everything()).join(' '))?.[1])).toBeCloseTo(
    2 * 0.0045 + (run?.state.cost ?? NaN),
    3,
  );
  expect(desk.delivered(run?.id ?? '')).toEqual({ 'a.txt': 'one', 'made.txt': 'made' });
  const shown = await desk.drover(['show', shortRunId(run?.id ?? '')]);
  expect(shown.stdout).toContain('1 of 1 task landed');
});

test('Ctrl-C ends the run of a chat, the chat continues, and the run can be resumed', async () => {
  const desk = await waitingDesk();
  const chat = chatAt(desk, ['--yes']);
  await chat.says('look at the parser');
  await chat.types('/run make it fast', KEYS.enter);
  await chat.shows('shell: until');
  chat.press(KEYS.ctrlC);
  await chat.shows('the agent reads the report of run');
  await chat.says('and now?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(textOf(desk.server.requests.at(-1)?.body)).toMatch(/cancelled.*and now\?/);
  const [run] = await listRuns(desk);
  await writeFile(join(desk.folder, 'go'), '');
  const resumed = await desk.drover(['resume', run?.id ?? '', '--yes', '--sandbox', 'off', '--view', 'lines']);
  expect([resumed.code, desk.delivered(run?.id ?? '')]).toEqual([0, { 'a.txt': 'one', 'made.txt': 'made' }]);
  expect(desk.server.requests.map(({ body }) => textOf(body)).at(-1)).toContain('it is slow');
});

test('a run that the user declines leaves a chat that knows of it', async () => {
  const desk = await RunDesk.with(handingOver());
  const chat = chatAt(desk);
  await chat.types('/run make it fast', KEYS.enter);
  await chat.shows('[y] run');
  chat.press('n');
  await chat.shows('the agent reads the report of run');
  await chat.says('and now?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(textOf(desk.server.requests.at(-1)?.body)).toMatch(/make it fast.*no task was begun.*and now\?/);
});

test('the budget of a chat covers its runs, and what follows them', async () => {
  const desk = await RunDesk.with(handingOver());
  const chat = chatAt(desk, ['--yes', '--budget', '4500tok']);
  await chat.says('look at the parser');
  await chat.types('/run make it fast', KEYS.enter);
  await chat.shows('the agent reads the report of run');
  await chat.says('and now?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const [run] = await listRuns(desk);
  expect(run?.state.end).toMatchObject({ failure: { kind: 'limit.reached', limit: 'budget' } });
  expect((await chat.screen()).join('\n')).toContain('budget');
});

test('/run needs a goal, a repository, and a mode that may change files', async () => {
  const desk = await RunDesk.with(handingOver());
  const chat = chatAt(desk, ['--cwd', desk.folder]);
  await chat.says('/run');
  await chat.says('/run make it fast');
  await chat.says("/run --gate 'npm test' make it fast");
  await chat.types(KEYS.shiftTab, '/run make it fast', KEYS.enter);
  await chat.shows('read-only mode');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  const screen = (await chat.screen()).join('\n');
  expect(screen).toContain('say what the run is to achieve');
  expect(screen).toContain('git repository');
  expect(screen).toContain('/run takes only a goal');
  expect(await listRuns(desk)).toEqual([]);
});

test('a chat that was killed in its run finds it with --continue', async () => {
  const desk = await waitingDesk();
  const first = chatAt(desk);
  await first.says('look at the parser');
  await first.types(KEYS.ctrlD);
  await first.code;
  const argv = ['chat', '--continue', '--yes', '--sandbox', 'off'];
  const killed = new MortalChat(argv, { cwd: desk.repository, env: envOf(desk) });
  await killed.printed('❯');
  killed.press(`/run make it fast${KEYS.enter}`);
  await killed.printed('shell: until');
  await killed.kill();
  const chat = chatAt(desk, ['--continue']);
  const [run] = await listRuns(desk);
  await chat.shows(`run ${shortRunId(run?.id ?? '')} of this session was interrupted`);
  await chat.says('and now?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(textOf(desk.server.requests.at(-1)?.body)).toMatch(/it is slow.*was interrupted.*and now\?/);
});

test('a chat that began with /run and was killed in it finds the run with --continue', async () => {
  const desk = await waitingDesk();
  const argv = ['chat', '--model', 'anthropic/claude-sonnet-4-5', '--yes', '--sandbox', 'off'];
  const killed = new MortalChat(argv, { cwd: desk.repository, env: envOf(desk) });
  await killed.printed('❯');
  killed.press(`/run make it fast${KEYS.enter}`);
  await killed.printed('shell: until');
  await killed.kill();
  const chat = chatAt(desk, ['--continue']);
  const [run] = await listRuns(desk);
  await chat.shows(`run ${shortRunId(run?.id ?? '')} of this session was interrupted`);
  await chat.says('and now?');
  await chat.types(KEYS.ctrlD);
  expect(await chat.code).toBe(0);
  expect(textOf(desk.server.requests.at(-1)?.body)).toMatch(/make it fast.*was interrupted.*and now\?/);
});

test('a chat of /run alone is listed and continued with its cost', async () => {
  const desk = await RunDesk.with(handingOver());
  const first = chatAt(desk, ['--yes']);
  await first.types('/run make it fast', KEYS.enter);
  await first.shows('the agent reads the report of run');
  await first.types(KEYS.ctrlD);
  await first.code;
  const [run] = await listRuns(desk);
  const cost = run?.state.cost ?? NaN;
  expect(cost).toBeGreaterThan(0);
  const listed = async (): Promise<unknown> =>
    (await desk.drover(['runs', '--json'])).stdout
      .split('\n')
      .filter((line) => line.includes('"kind":"session"'))
      .map((line) => JSON.parse(line) as unknown);
  const row = { title: '/run make it fast', state: 'done' };
  expect(await listed()).toMatchObject([row]);
  const again = chatAt(desk, ['--continue']);
  await again.says('/cost');
  const before = (await again.terminal.everything()).join(' ');
  expect(Number(/\$([\d.]+); the conversation/.exec(before)?.[1])).toBeCloseTo(cost, 3);
  expect(before).not.toContain('its last turn');
  await again.says('and now?');
  await again.types(KEYS.ctrlD);
  expect(await again.code).toBe(0);
  expect(textOf(desk.server.requests.at(-1)?.body)).toMatch(/1 of 1 task landed.*and now\?/);
  expect(await listed()).toMatchObject([row]);
  const [{ id }] = (await listed()) as [{ readonly id: string }];
  expect(JSON.parse((await desk.drover(['show', id, '--json'])).stdout)).toMatchObject({ runs: { count: 1, cost } });
  expect((await desk.drover(['show', id])).stdout).toMatch(/runs +1, \$/);
});

test('a real SIGINT ends the run of a chat, and the chat goes on', async () => {
  const desk = await waitingDesk();
  const argv = ['chat', '--model', 'anthropic/claude-sonnet-4-5', '--yes', '--sandbox', 'off'];
  const chat = new MortalChat(argv, { cwd: desk.repository, env: { ...envOf(desk), CI: '1' } });
  await chat.printed('❯');
  chat.press(`/run make it fast${KEYS.enter}`);
  await chat.printed('shell: until');
  chat.signal('SIGINT');
  await chat.printed('the agent reads the report of run');
  chat.press(`and now?${KEYS.enter}`);
  await chat.printed('✓ done');
  chat.press(`/exit${KEYS.enter}`);
  expect(await chat.ended()).toBe(0);
});
