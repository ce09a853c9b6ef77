// Run control: calls of the user to a run while it works. The dashboard and the server hold the same object.
//
// Guarantees
//   1. Each request is refused with a reason, or it is in the journal: as a message, a pause, or the end or the
//      reopening of a task.
//   2. A message reaches the worker at its next step. While no attempt runs, it waits for the next one. One that
//      comes after the worker's last step is reported as a warning.
//   3. A cancelled task stays cancelled when the run is resumed. A retry starts it anew.
//
// Crash: messages that were not delivered are in the ledger, and go to the resumed attempt.

import { DroverError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { Mail, TaskMessage } from '@drover/core/task/link';
import type { Event, Place } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import type { PlannedTask } from '@drover/protocol/plan';
import { isDone } from '@drover/protocol/run';
import type { TaskLedger } from '../run/tasks.ts';

const MESSAGE_CHARS_MAX = 100_000;
const CANCELLED: Failure = { kind: 'task.cancelled' };

/** Why a request was refused; undefined if it is done. */
export type Refused = string | undefined;

/** The parts of the run that control uses. */
export type ControlledRun = {
  readonly ledger: TaskLedger;
  readonly tell: (event: Event, place: Place) => void;
};

/** Starts tasks of the plan again while it is executed. Returns why not, or undefined. */
export type StartAgain = (tasks: readonly PlannedTask[]) => Refused;

/** The end of control that one attempt holds. */
export type ControlledAttempt = { readonly signal: AbortSignal; readonly mail: Mail; readonly close: () => void };

export class RunControl {
  #run: ControlledRun | undefined;
  #startAgain: StartAgain | undefined;
  readonly #attempts = new Map<string, AttemptMail>(); // by task
  #pause: PromiseWithResolvers<void> | undefined;

  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** Sends a message to the worker of a task. */
  message(task: string, text: string): Refused {
    const run = this.#run;
    const words = text.trim();
    if (words === '') return 'a message has words';
    if (words.length > MESSAGE_CHARS_MAX) return `a message has at most ${MESSAGE_CHARS_MAX} characters`;
    if (run === undefined || !isTaskToControlPlanned(run, task)) return `there is no task ${task} at work`;
    const { step } = run.ledger.task(task);
    if (step.at === 'over') return `${task} is ${step.status}; retry it to send it a message`;
    if (step.at === 'landing') return `the worker of ${task} is done`;
    const message: TaskMessage = { id: newId('msg'), text: words };
    run.tell({ type: 'task_message', ...message }, { task });
    this.#attempts.get(task)?.hear(message);
    return undefined;
  }

  /** Cancels one task. Tasks that depend on it are skipped. */
  cancel(task: string): Refused {
    const run = this.#run;
    if (run === undefined || !isTaskToControlPlanned(run, task)) return `there is no task ${task} at work`;
    const { step } = run.ledger.task(task);
    if (step.at === 'over') return `${task} is ${step.status} already`;
    if (step.at === 'landing') return `${task} is being merged, which takes no cancel`;
    const attempt = this.#attempts.get(task);
    if (attempt !== undefined) {
      attempt.stop.abort(new DroverError(CANCELLED));
      return undefined;
    }
    const end = { type: 'task_end', status: 'cancelled', again: false, files: [], usage: NO_USAGE } as const;
    run.tell({ ...end, failure: CANCELLED, reason: describe(CANCELLED) }, { task });
    return undefined;
  }

  /** Starts failed or cancelled tasks anew, with the tasks that were skipped because of them. All, if none is named. */
  retry(named: readonly string[]): Refused {
    const run = this.#run;
    const start = this.#startAgain;
    if (run === undefined || start === undefined) return 'no task can be retried now: the run carries out no plan';
    const { ledger } = run;
    const open = named.find((task) => !canUserRetryTask(ledger, task));
    if (open !== undefined) return `${open} has not failed, so there is nothing to retry`;
    const chosen = withSkippedTasksToRetry(ledger, named.length > 0 ? named : listTasksUserCanRetry(ledger));
    if (chosen.length === 0) return 'no task has failed, so there is nothing to retry';
    return start(chosen);
  }

  /** While paused, no attempt starts; those at work continue. */
  pause(isPaused: boolean): Refused {
    if (this.#run === undefined) return 'the run is not at work';
    if (isPaused === this.isPaused) return undefined;
    const waiting = this.#pause;
    this.#pause = isPaused ? Promise.withResolvers() : undefined;
    this.#run.tell({ type: 'run_pause', paused: isPaused }, {});
    waiting?.resolve();
    return undefined;
  }

  // ── for the run ─────────────────────────────────────────────────────────────────────────────

  open(run: ControlledRun): void {
    this.#run = run;
  }

  close(): void {
    this.#pause?.resolve();
    this.#pause = undefined;
    this.#run = undefined;
  }

  /** Sets how tasks are started again; undefined while no plan is carried out. */
  executing(start: StartAgain | undefined): void {
    this.#startAgain = start;
  }

  /** Resolves while the run is not paused, and when the signal is aborted. */
  async untilUnpaused(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<void>();
    const wake = () => aborted.resolve();
    signal.addEventListener('abort', wake, { once: true });
    while (this.#pause !== undefined && !signal.aborted) await Promise.race([this.#pause.promise, aborted.promise]);
    signal.removeEventListener('abort', wake);
  }

  begin(task: string): ControlledAttempt {
    const waiting = this.#run?.ledger.task(task).messages ?? [];
    const attempt = new AttemptMail(waiting, (event) => this.#run?.tell(event, { task }));
    this.#attempts.set(task, attempt);
    return {
      signal: attempt.stop.signal,
      mail: attempt,
      close: () => {
        if (this.#attempts.get(task) === attempt) this.#attempts.delete(task);
      },
    };
  }
}

/** The messages and the stop of one attempt. */
class AttemptMail implements Mail {
  readonly stop = new AbortController();
  readonly #waiting: Map<string, TaskMessage>; // by id
  readonly #tell: (event: Event) => void;
  #listener: (message: TaskMessage) => void = () => undefined;

  constructor(waiting: readonly TaskMessage[], tell: (event: Event) => void) {
    this.#waiting = new Map(waiting.map((message) => [message.id, message]));
    this.#tell = tell;
  }

  hear(message: TaskMessage): void {
    this.#waiting.set(message.id, message);
    this.#listener(message);
  }

  /** Called again when the attempt resumes in another thread, which has no message of the first one. */
  readonly onMessage = (listener: (message: TaskMessage) => void): void => {
    this.#listener = listener;
    for (const message of this.#waiting.values()) listener(message);
  };

  readonly delivered = (id: string): void => {
    if (this.#waiting.delete(id)) this.#tell({ type: 'task_message_delivered', id });
  };
}

function isTaskToControlPlanned({ ledger }: ControlledRun, task: string): boolean {
  return ledger.plan.some(({ id }) => id === task);
}

function canUserRetryTask(ledger: TaskLedger, task: string): boolean {
  const status = ledger.status(task);
  return ledger.plan.some(({ id }) => id === task) && status !== undefined && !isDone(status);
}

function listTasksUserCanRetry(ledger: TaskLedger): readonly string[] {
  return ledger.plan.flatMap(({ id }) => (canUserRetryTask(ledger, id) ? [id] : []));
}

/** Adds the skipped tasks that depend on these, and the failed tasks that these depend on. */
function withSkippedTasksToRetry(ledger: TaskLedger, named: readonly string[]): readonly PlannedTask[] {
  const chosen = new Set(named);
  for (let before = -1; before !== chosen.size;) {
    before = chosen.size;
    for (const { id, dependsOn } of ledger.plan) {
      if (chosen.has(id))
        dependsOn.filter((each) => canUserRetryTask(ledger, each)).forEach((each) => chosen.add(each));
      else if (ledger.status(id) === 'skipped' && dependsOn.some((each) => chosen.has(each))) chosen.add(id);
    }
  }
  return ledger.plan.filter(({ id }) => chosen.has(id));
}
