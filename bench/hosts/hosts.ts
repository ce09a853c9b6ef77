// Cost of worker hosts: the run of `bench/run` (eight workers with twenty steps each) on two hosts of this machine,
// compared with the same run without hosts. Then a single worker with many steps, for the latency that the line adds
// to a step. Last, how much faster a run is with more hosts, when the model takes 200 ms for each answer.

import { join } from 'node:path';
import type { AgentScript, Answer, Script } from '@drover/rehearsal/script';
import { dist, measured, median, type Started } from '../run/programs.ts';
import { type BenchRedis, type Spent, spentBy, startHost, startRedis } from './redis.ts';
import { scriptFor, STEPS, WORKERS } from '../run/run.ts';

const TIMES = Number(process.env['DROVER_BENCH_TIMES'] ?? 5);
const HOSTS = 2;
const WALL_AIM = 1.5;
const CPU_AIM = 1.2;
const LATENCY_AIM_MS = 5;
const MANY_STEPS = 200;
const ANSWER_MS = 200;
const SLOW_TASKS = 16;
const SLOW_ANSWERS = 10;
const SLOTS = 4;

/** The lines to print. */
export async function lines(): Promise<readonly string[]> {
  using redis = await startRedis();
  return [...(await costOfHosts(redis)), await speedUp(redis)];
}

async function costOfHosts(redis: BenchRedis): Promise<readonly string[]> {
  await using hosts = new AsyncDisposableStack();
  for (let n = 0; n < HOSTS; n++) hosts.use(await startHost(redis, WORKERS / HOSTS));
  const [local, hosted] = await alternately(startOf(scriptFor(WORKERS), WORKERS), redis);
  const one = oneTask();
  const [oneLocal, oneHosted] = await alternately(startOf(one, 1), redis);
  const steps = WORKERS * STEPS;
  const what = `${WORKERS} workers x ${STEPS} steps`;
  const added = (oneHosted.wallMs - oneLocal.wallMs) / MANY_STEPS;
  return [
    `${what}, wall: here ${ms(local.wallMs)}, on ${HOSTS} hosts of this machine ${ms(hosted.wallMs)}: ${(hosted.wallMs / local.wallMs).toFixed(2)}x (aim ${WALL_AIM}x)`,
    `${what}, processor time of drover run per step: here ${(local.cpuMs / steps).toFixed(1)} ms, with hosts ${(hosted.cpuMs / steps).toFixed(1)} ms: ${(hosted.cpuMs / local.cpuMs).toFixed(2)}x (aim ${CPU_AIM}x)`,
    `one worker x ${MANY_STEPS} steps, added to a step on loopback: ${added.toFixed(1)} ms (aim ${LATENCY_AIM_MS} ms)`,
  ];
}

/** Medians of the same run here and on hosts. */
async function alternately(start: Started, redis: BenchRedis): Promise<readonly [Spent, Spent]> {
  const here: Spent[] = [];
  const there: Spent[] = [];
  for (let n = 0; n <= TIMES; n++) {
    const local = await measured(start, spentBy);
    const hosted = await measured(onHosts(start, redis), spentBy);
    // The first run of each kind warms the disk, the compile cache and the hosts.
    if (n === 0) continue;
    here.push(local);
    there.push(hosted);
  }
  return [medianSpent(here), medianSpent(there)];
}

async function speedUp(redis: BenchRedis): Promise<string> {
  const script = slowScript();
  const walls: number[] = [];
  for (const count of [1, 2, 4]) {
    await using hosts = new AsyncDisposableStack();
    for (let n = 0; n < count; n++) hosts.use(await startHost(redis, SLOTS));
    const start = onHosts(startOf(script, count * SLOTS), redis);
    await measured(start, spentBy);
    const { wallMs } = await measured(start, spentBy);
    walls.push(wallMs);
  }
  const [one = 0] = walls;
  const told = walls.map((wall, at) => `${2 ** at}: ${ms(wall)} (${(one / wall).toFixed(1)}x)`).join(', ');
  return `${SLOW_TASKS} tasks x ${SLOW_ANSWERS} answers of ${ANSWER_MS} ms, hosts with ${SLOTS} slots: ${told}`;
}

function startOf(script: Script, workers: number): Started {
  const run = [join(dist, 'drover.cjs'), 'run', 'go', '--json', '--yes', '--model=anthropic/any', '--sandbox=off'];
  return { script, argv: [...run, `--workers=${workers}`] };
}

function onHosts({ argv, ...start }: Started, { url }: BenchRedis): Started {
  return { ...start, argv: [...argv, `--queue=${url}`] };
}

function oneTask(): Script {
  const shell: Answer = { calls: [{ name: 'shell', args: { command: 'true' } }] };
  const answers = [...Array.from({ length: MANY_STEPS - 1 }, () => shell), submitted('t1')];
  return scriptWith({ t1: answers });
}

function slowScript(): Script {
  const slow = (answer: Answer): Answer => ({ ...answer, delayMs: ANSWER_MS });
  const look = slow({ calls: [{ name: 'read', args: { path: 'file-1.txt' } }] });
  const names = Array.from({ length: SLOW_TASKS }, (_, at) => `t${at + 1}`);
  const answers = (id: string) => [...Array.from({ length: SLOW_ANSWERS - 1 }, () => look), slow(submitted(id))];
  return scriptWith(Object.fromEntries(names.map((id) => [id, answers(id)])));
}

function submitted(id: string): Answer {
  return { calls: [{ name: 'submit_result', args: { summary: id } }] };
}

function scriptWith(work: Readonly<Record<string, readonly Answer[]>>): Script {
  const tasks = Object.keys(work).map((id) => ({ id, title: `do ${id}`, prompt: id }));
  const agents = Object.entries(work).map(([id, answers]): [string, AgentScript] => [
    id,
    { assigned: `Your task is ${id}:`, answers },
  ]);
  return {
    order: 'conversation',
    answers: [{ calls: [{ name: 'submit_plan', args: { tasks } }] }, { text: 'done' }],
    agents: Object.fromEntries(agents),
  };
}

function medianSpent(all: readonly Spent[]): Spent {
  return { wallMs: median(all.map(({ wallMs }) => wallMs)), cpuMs: median(all.map(({ cpuMs }) => cpuMs)) };
}

function ms(figure: number): string {
  return `${Math.round(figure)} ms`;
}
