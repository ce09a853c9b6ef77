// Moves an attempt: where the place in which it works is lost, it resumes in another one.
//
//   an attempt = its history, from the journal, and its workspace
//
// Both outlive the place, be that a thread or another machine. So a move is what a resume after a process crash is, for
// one attempt: open calls count as uncertain, answers that were whole are not asked for again. The attempt keeps its
// number: a move is not a failure of the task.
//
// Guarantees
//   1. Everything that the attempt told is durable before its history is read.
//   2. A request under way is not repeated: the run keeps reading the answer, and the next place gets it when
//      it asks for the same thing (held-answer.ts).
//   3. A place that blames the attempt tells an outcome, so moves end: each of them follows the end of another attempt,
//      or leads to a place of its own, whose loss names the attempt.

import type { Event } from '@drover/protocol/events';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { Past } from '@drover/core/journal/history';
import type { TaskLink } from '@drover/core/task/link';
import type { RunTask, TaskSpec } from '@drover/core/task/task';
import { HeldAnswer } from './held-answer.ts';

export type MovableAttempt = {
  readonly spec: TaskSpec;
  readonly link: TaskLink;
  readonly runTask: RunTask;
  /** Reads the attempt's history; undefined if it has told nothing. */
  readonly history: () => Promise<Past | undefined>;
  readonly tell: (event: Event) => void;
};

/** Runs an attempt in one place after another, until one of them tells its outcome. */
export async function runMovingAttempt(attempt: MovableAttempt, signal: AbortSignal): Promise<TaskOutcome> {
  const { runTask, history, tell } = attempt;
  const held = new HeldAnswer(attempt.link, signal);
  let spec = attempt.spec;
  for (;;) {
    const ended = await runTask(spec, held.link, signal);
    if (ended.status !== 'displaced') return ended;
    const { why, alone } = ended;
    tell({ type: 'attempt_moved', reason: why, alone });
    const step = await held.hold();
    await held.link.settled();
    const past = await history();
    // It takes the held answer in the step in which it was asked for.
    const resumed = resumeAttemptFrom(attempt.spec, past && step !== undefined ? { ...past, steps: step - 1 } : past);
    spec = { ...resumed, ...(alone && { alone }) };
  }
}

/** The same attempt with this history. Without one it begins with its assignment. */
export function resumeAttemptFrom(spec: TaskSpec, past: Past | undefined): TaskSpec {
  return past === undefined || past.turn === 0 ? spec : { ...spec, begin: { resume: true }, past };
}
