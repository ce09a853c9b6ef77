// Dollars shown to the user when the model changes: earlier costs stay, and the budget holds.

import { expect, test } from 'vitest';
import { calls, planned, RunDesk, submits, writes } from '../support/run/run-desk.ts';
import { ChatDesk, KEYS } from './chat/chat-desk.ts';
import { drover, type Ran } from './fake-io.ts';

const DEAR = 'anthropic/claude-opus-4-1'; // $75 per million tokens of output
const CHEAP = 'anthropic/claude-haiku-4-5'; // $5
const LONG = { usage: { output: 20_000 } }; // $1.50, or $0.10

const costIn = ({ stdout }: Ran): number => (JSON.parse(stdout) as { readonly cost: number }).cost;

test('a run resumed with a cheaper model keeps the dollars of the expensive one', async () => {
  const desk = await RunDesk.with(
    planned({
      slow: {
        answers: [
          { ...writes('slow.txt', 'slow\n'), ...LONG },
          calls('shell', { command: 'sleep 60' }),
          { ...submits('slow'), ...LONG },
        ],
      },
    }),
  );
  const isAsleep = (stdout: string): boolean => stdout.includes('"summary":"shell: sleep 60"');
  const started = ['run', 'do it', '--yes', '--workers', '0', '--model', DEAR, '--budget', '9usd'];
  await desk.interrupted([...started, '--json', '--result', 'before.json'], isAsleep);
  const before = JSON.parse(await desk.read('before.json')) as { readonly cost: number };
  const { end, events } = await desk.run(['resume', '--yes', '--model', CHEAP]);
  const id = end.run ?? '';
  const [row, summary] = [await desk.drover(['runs', '--json']), await desk.drover(['show', id, '--json'])].map(costIn);

  expect(before.cost).toBeGreaterThan(1.5);
  // The second long answer, with a few thousand tokens of prompt.
  expect((end.cost ?? 0) - before.cost).toBeGreaterThan(0.1);
  expect((end.cost ?? 0) - before.cost).toBeLessThan(0.2);
  expect([row, summary]).toEqual([expect.closeTo(end.cost ?? 0), expect.closeTo(end.cost ?? 0)]);
  expect(end.tasks[0]?.cost).toBeGreaterThan(1.6);
  const spent = events.flatMap((event) => (event.type === 'budget' ? [event.spent] : []));
  expect(Math.min(...spent)).toBeGreaterThan(1.5);
});

test('a run that spent its budget on one model is not resumed with a cheaper one', async () => {
  const desk = await RunDesk.with(
    planned({ dear: { answers: [{ ...writes('a.txt', 'a\n'), ...LONG }, submits('dear')] } }),
  );
  const poor = await desk.run(['run', 'do it', '--yes', '--model', DEAR, '--budget', '1.6usd']);
  expect(poor.code).toBe(6);
  const { code, stderr } = await desk.drover(['resume', '--model', CHEAP, '--budget', '1.4usd']);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/has spent \$1\.5\d, and its budget of \$1\.40 allows no/)]);
});

test('a chat that changes its model keeps its dollars in /usage, runs and show', async () => {
  const desk = await ChatDesk.with({
    answers: [
      { text: 'First.', ...LONG },
      { text: 'Second.', ...LONG },
    ],
  });
  const chat = desk.chat(['--session', 'money', '--model', DEAR]);
  await chat.says('one');
  await chat.shows('First.');
  await chat.says(`/model ${CHEAP}`);
  await chat.says('two');
  await chat.shows('Second.');
  await chat.says('/usage');
  await chat.shows('$1.6');
  chat.press(KEYS.ctrlD);
  await chat.code;
  const given = { cwd: desk.cwd, env: desk.env };
  const ran = [await drover(['runs', '--json'], given), await drover(['show', 'money', '--json'], given)];
  expect(ran.map((each) => Math.floor(costIn(each) * 10))).toEqual([16, 16]);
});

test('the budget of a chat holds over interrupted answers and two changes of model', async () => {
  const desk = await ChatDesk.with({ otherwise: { text: 'Late.', delayMs: 600_000 } });
  const cap = 60_000; // the first request reserves most of the budget, the second one the rest
  const chat = desk.chat(['--model', DEAR, '--budget', `${cap}tok`], { columns: 120 });
  for (const [at, model] of [CHEAP, DEAR].entries()) {
    await chat.types('go', KEYS.enter);
    await desk.server.received(at + 1);
    chat.press(KEYS.escape);
    await chat.says(`/model ${model}`);
  }
  await chat.says('go');
  await chat.shows('the budget does not allow another request');
  await chat.shows('counts as spent');
  chat.press(KEYS.ctrlD);
  await chat.code;
  // The provider may charge the full reservation of both requests, though neither answer was read to its end.
  const allowed = desk.server.requests.map(({ body }) => (body as { readonly max_tokens: number }).max_tokens);
  expect([allowed.length, allowed.reduce((sum, each) => sum + each, 0) <= cap]).toEqual([2, true]);
});
