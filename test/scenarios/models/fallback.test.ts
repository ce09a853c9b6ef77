// Fallback: an unavailable model hands over to the next one of its list, and only an unavailable one.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { modelCostOf, type Price } from '@drover/core/model/catalog';
import type { Recorded } from '@drover/protocol/events';
import type { AnswerSource } from '@drover/rehearsal/script';
import { expect, onTestFinished, test } from 'vitest';
import { LAUNCHER } from '../../cli/program.ts';
import { planned, RunDesk, statuses, submits, writes } from '../../support/run/run-desk.ts';

const DEAR = 'anthropic/dear';
const CHEAP = 'openai/cheap';
const PRICES: Readonly<Record<string, Price>> = {
  [DEAR]: { input: 100, output: 500, cacheRead: 100, cacheWrite: 100 },
  [CHEAP]: { input: 1, output: 5, cacheRead: 1, cacheWrite: 1 },
};
const CONFIG = `prices:
  ${DEAR}: { input: 100, output: 500 }
  ${CHEAP}: { input: 1, output: 5 }
`;
const ROLES = ['--plan-model', DEAR, '--work-model', DEAR, '--work-model', CHEAP];

type Conditional = Extract<AnswerSource, (request: never) => unknown>;

/** The status in place of an answer, for one model. Retries are immediate. */
const refuses =
  (model: string, status: number): Conditional =>
  (request) =>
    request.model === model ? { fault: { fault: 'status', status, headers: { 'retry-after-ms': '1' } } } : undefined;

async function deskWith(answers: readonly AnswerSource[]): Promise<RunDesk> {
  const desk = await RunDesk.with(planned({ one: { answers } }));
  await mkdir(join(desk.repository, '..', '.config', 'drover'), { recursive: true });
  await writeFile(configOf(desk), CONFIG);
  return desk;
}

const configOf = (desk: RunDesk) => join(desk.repository, '..', '.config', 'drover', 'config.yaml');
const given = (desk: RunDesk) => ({ env: { XDG_CONFIG_HOME: join(desk.repository, '..', '.config') } });
const models = ({ server }: RunDesk) => server.requests.map(({ body }) => (body as { model: string }).model);
const of = <Type extends Recorded['type']>(events: readonly unknown[], type: Type) =>
  (events as readonly Recorded[]).filter((event): event is Extract<Recorded, { type: Type }> => event.type === type);

const NEVER = { text: 'never told', delayMs: 600_000 };
const BROKEN = [refuses('dear', 500), writes('b.txt', 'two\n'), submits('done')];

test('every retry of a worker’s request belongs to the attempt of its task', async () => {
  let refusals = 2;
  const refusesTwice: Conditional = (request) => (refusals-- > 0 ? refuses('dear', 529)(request) : undefined);
  const answers = [refusesTwice, writes('b.txt', 'two\n'), submits('done')];
  const { events } = await (await deskWith(answers)).run(['run', 'go', '--yes', '--model', DEAR]);
  const retries = of(events, 'retry').map(({ task, attempt, retry, retriesMax }) => [task, attempt, retry, retriesMax]);
  expect(retries).toEqual([
    ['one', 1, 1, 7],
    ['one', 1, 2, 7],
  ]);
  // A refused request is not a cache miss.
  expect(of(events, 'warning')).toEqual([]);
});

test('an overloaded model hands over once, and the answering model sets the price', async () => {
  const desk = await deskWith([refuses('dear', 529), writes('b.txt', 'two\n'), submits('done')]);
  const { events, end } = await desk.run(['run', 'go', '--yes', ...ROLES], given(desk));
  expect(statuses(end)).toEqual({ one: 'landed' });
  expect(of(events, 'model_fallback').map(({ from, to, task, attempt }) => ({ from, to, task, attempt }))).toEqual([
    { from: DEAR, to: CHEAP, task: 'one', attempt: 1 },
  ]);
  // The plan, three tries of the overloaded model, two answers of the next one, the final answer.
  expect(models(desk)).toEqual(['dear', 'dear', 'dear', 'dear', 'cheap', 'cheap', 'dear']);
  const paid = of(events, 'usage').filter(({ task, usage }) => task === 'one' && usage.output > 0);
  expect(paid.map(({ requestCost }) => requestCost)).toEqual(
    paid.map(({ usage }) => expect.closeTo(modelCostOf(usage, PRICES[CHEAP] as Price), 10)),
  );
  const planning = of(events, 'usage').filter(({ task }) => task === undefined);
  const sum = [
    ...planning.map(({ usage }) => modelCostOf(usage, PRICES[DEAR] as Price)),
    ...paid.map((each) => each.requestCost ?? 0),
  ];
  expect(end.cost).toBeCloseTo(
    sum.reduce((total, each) => total + each, 0),
    10,
  );
});

test('a move to a fallback is a line while it happens and a row of the report', async () => {
  const desk = await deskWith(BROKEN);
  const ran = await desk.drover(['run', 'go', '--yes', '--workers', '0', ...ROLES], given(desk));
  expect(ran.stdout).toMatch(/one +.*asking openai\/cheap instead of anthropic\/dear: the provider is unavailable/);
  expect(ran.stdout).toContain(`  plan: ${DEAR}\n  work: ${DEAR}, else ${CHEAP}\n`);
  expect(ran.stdout).toContain(`  one, attempt 1 moved from ${DEAR} to ${CHEAP}: the provider is unavailable`);
  expect(ran.stdout).toContain('The prompt cache could not be shared between different models.');
});

test.each([400, 401, 403])('status %i never moves to the fallback', async (status) => {
  const desk = await deskWith([refuses('dear', status), writes('b.txt', 'two\n'), submits('done')]);
  const { events, end } = await desk.run(['run', 'go', '--yes', ...ROLES], given(desk));
  expect(statuses(end)).toEqual({ one: 'failed' });
  expect(of(events, 'model_fallback')).toEqual([]);
  expect(models(desk)).not.toContain('cheap');
});

test('a refusal and a spent budget never move to the fallback', async () => {
  const refusing = await deskWith([{ text: 'No.', stop: 'refusal' }]);
  const refused = await refusing.run(['run', 'go', '--yes', ...ROLES], given(refusing));
  const poor = await deskWith(BROKEN);
  const spent = await poor.run(['run', 'go', '--yes', '--budget', '0.2usd', ...ROLES], given(poor));
  expect([...of(refused.events, 'model_fallback'), ...of(spent.events, 'model_fallback')]).toEqual([]);
  expect([models(refusing), models(poor)].flat()).not.toContain('cheap');
});

test('the next attempt tries the first model again', async () => {
  // Two empty answers of the fallback end the attempt; the second attempt finds the first model available.
  const calls = { dear: 0 };
  const answers: AnswerSource = (request) => {
    if (request.model === 'cheap') return { text: '' };
    calls.dear += 1;
    return calls.dear <= 3
      ? { fault: { fault: 'status', status: 500, headers: { 'retry-after-ms': '1' } } }
      : undefined;
  };
  const desk = await deskWith([answers, writes('b.txt', 'two\n'), submits('done')]);
  const { events, end } = await desk.run(['run', 'go', '--yes', ...ROLES], given(desk));
  expect(statuses(end)).toEqual({ one: 'landed' });
  expect(of(events, 'model_fallback').map(({ attempt }) => attempt)).toEqual([1]);
  expect(models(desk).slice(1)).toEqual(['dear', 'dear', 'dear', 'cheap', 'cheap', 'dear', 'dear', 'dear']);
});

test('the coordinator falls back too, and its plan stays valid for another provider', async () => {
  const script = planned({ one: { answers: [writes('b.txt', 'two\n'), submits('done')] } });
  const looks = { thinking: 'What is there?', calls: [{ name: 'read', args: { path: 'a.txt' } }] };
  const breaks: AnswerSource = (request) =>
    JSON.stringify(request).includes('What is there?') ? refuses('cheap', 500)(request) : undefined;
  const desk = await RunDesk.with({ ...script, answers: [breaks, looks, ...(script.answers ?? [])] });
  const roles = ['--plan-model', CHEAP, '--plan-model', DEAR, '--work-model', DEAR];
  const { events, end } = await desk.run(['run', 'go', '--yes', ...roles]);
  expect(statuses(end)).toEqual({ one: 'landed' });
  expect(of(events, 'model_fallback').map(({ worker, task }) => ({ worker, task }))).toEqual([{ worker: 0 }]);
  expect(models(desk)).toEqual(['cheap', 'cheap', 'cheap', 'cheap', 'dear', 'dear', 'dear', 'dear']);
  // The scripted server refuses what the real API refuses, such as thinking from another provider.
  expect(new Set(desk.server.requests.map(({ status }) => status))).toEqual(new Set([200, 500]));
});

/** drover in a separate process, on the desk's server. */
function start(desk: RunDesk, args: readonly string[]) {
  const env = {
    PATH: process.env['PATH'],
    HOME: desk.folder,
    DROVER_HOME: desk.home,
    ANTHROPIC_API_KEY: 'k',
    OPENAI_API_KEY: 'k',
    ANTHROPIC_BASE_URL: desk.server.url,
    OPENAI_BASE_URL: `${desk.server.url}/v1`,
    ...given(desk).env,
  };
  const child = spawn(process.execPath, [LAUNCHER, ...args], { cwd: desk.repository, env, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

test('a killed attempt resumes on the fallback it had reached, and replays', async () => {
  const reached = Promise.withResolvers<undefined>();
  let isKilled = false;
  const hangs: AnswerSource = (request) => {
    if (request.model !== 'cheap' || isKilled || !JSON.stringify(request).includes('b.txt')) return undefined;
    reached.resolve(undefined);
    return NEVER;
  };
  const desk = await deskWith([refuses('dear', 500), hangs, writes('b.txt', 'two\n'), submits('done')]);
  const child = start(desk, ['run', 'go', '--yes', '--workers', '1', ...ROLES, '--json']);
  await reached.promise;
  child.kill('SIGKILL');
  await once(child, 'exit');
  isKilled = true;
  const before = models(desk).length;
  const resumed = await desk.run(['resume', '--yes', '--workers', '0'], given(desk));
  expect(statuses(resumed.end)).toEqual({ one: 'landed' });
  // No later request of the attempt uses the unavailable model; the last request is the coordinator's.
  expect(models(desk).slice(before)).toEqual(['cheap', 'dear']);
  const replayed = await desk.drover(['replay', resumed.end.run ?? ''], given(desk));
  expect([replayed.code, replayed.stdout.includes('moved from')]).toEqual([0, true]);
});

test('resume with another model leaves the fallback that an attempt had reached', async () => {
  const hangs: AnswerSource = (request) => (request.model === 'cheap' ? NEVER : undefined);
  const desk = await deskWith([refuses('dear', 500), hangs, writes('b.txt', 'two\n'), submits('done')]);
  const isOnFallback = () => models(desk).includes('cheap');
  await desk.interrupted(['run', 'go', '--yes', '--workers', '0', ...ROLES], isOnFallback, given(desk));
  const before = models(desk).length;
  const resumed = await desk.run(['resume', '--yes', '--workers', '0', '--model', 'openai/third'], given(desk));
  expect(statuses(resumed.end)).toEqual({ one: 'landed' });
  expect(new Set(models(desk).slice(before))).toEqual(new Set(['third']));
  expect(of(resumed.events, 'model_fallback')).toEqual([]);
});
