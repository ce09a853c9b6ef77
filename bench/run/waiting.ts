// A hundred workers on two threads, with a model that takes two seconds for each answer: they wait, all at once. The
// floor is the answers of one worker, one after the other; nothing else has to be waited for.

import { join } from 'node:path';
import type { AgentScript, Answer, Script } from '@drover/rehearsal/script';
import { dist, measured, timed } from './programs.ts';

const WORKERS = 100;
const THREADS = 2;
const ANSWER_MS = 2_000;
const ANSWERS = 10;
const AIM = 1.2;

const names = Array.from({ length: WORKERS }, (_, at) => `t${at + 1}`);
const slow = (answer: Answer): Answer => ({ ...answer, delayMs: ANSWER_MS });
const look = slow({ calls: [{ name: 'read', args: { path: 'file-1.txt' } }] });

const script: Script = {
  order: 'conversation',
  answers: [],
  agents: Object.fromEntries(
    names.map((id): [string, AgentScript] => [
      id,
      {
        assigned: `Your task is ${id}:`,
        answers: [
          ...Array.from({ length: ANSWERS - 1 }, () => look),
          slow({ calls: [{ name: 'submit_result', args: { summary: id } }] }),
        ],
      },
    ]),
  ),
};

const plan = ['tasks:', ...names.map((id) => `  - { id: ${id}, title: do ${id}, prompt: ${id}, mode: read }`), ''];

/** Lines to print. */
export async function lines(): Promise<readonly string[]> {
  const workers = [
    `--workers=${WORKERS}`,
    `--threads=${THREADS}`,
    '--plan=plan.yaml',
    `--tasks=${WORKERS}`,
    '--sandbox=off',
  ];
  const argv = [join(dist, 'drover.cjs'), 'run', 'go', '--json', '--yes', '--model=anthropic/any', ...workers];
  const wallMs = await measured({ script, argv, files: { 'plan.yaml': plan.join('\n') } }, timed);
  const idealMs = ANSWERS * ANSWER_MS;
  return [
    `${WORKERS} workers on ${THREADS} threads, ${ANSWERS} answers of ${ANSWER_MS / 1000} s each, wall: ideal ${idealMs} ms, drover ${Math.round(wallMs)} ms: ${(wallMs / idealMs).toFixed(2)}x (aim ${AIM}x; the first worker goes ahead by one answer to warm the cache)`,
  ];
}
