// Desk: a session that is open in this process. Callers use it one after another, and it counts its users.

import type { Diagnose } from '@drover/core/diagnosis';
import type { Input } from '@drover/core/session/execution';
import type { Session } from '@drover/core/session/session';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import type { UserAnswer } from '@drover/core/permission/questions';
import type { HostedSession } from '../host.ts';
import { bestEffort } from '@drover/core/promises';

type Execution = { readonly controller: AbortController; readonly done: Promise<boolean> };

export type DeskOptions = {
  readonly id: string;
  readonly hosted: HostedSession;
  readonly model: string | undefined; // as it was asked for
  readonly diagnose: Diagnose;
  readonly onClose: () => void;
};

export class Desk {
  readonly #options: DeskOptions;
  readonly #executions = new Set<Execution>();
  #last: Promise<unknown> = Promise.resolve();
  #users = 0;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.id;
  }

  /** The model that was requested at opening; undefined for the journal's or the server's model. */
  get wantedModel(): string | undefined {
    return this.#options.model;
  }

  /** The number of questions that wait for an answer. */
  get waiting(): number {
    return this.#options.hosted.questions.waiting;
  }

  get session(): Session {
    return this.#options.hosted.session;
  }

  /** True while an execution runs, so its events are not all durable yet. */
  get isAtWork(): boolean {
    return this.#executions.size > 0;
  }

  get isInUse(): boolean {
    return this.#users > 0 || this.isAtWork;
  }

  /** Runs work in turn, so that no caller decides on a state that another is about to change. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#users += 1;
    const result = this.#last.then(work);
    this.#last = bestEffort(result);
    try {
      return await result;
    } finally {
      this.#users -= 1;
    }
  }

  /** Begins or resumes a turn. Resolves to true at its end, to false if it failed, perhaps without an end event. */
  execute(input: Input): Promise<boolean> {
    const { diagnose } = this.#options;
    const controller = new AbortController();
    const done = this.session.run(input, controller.signal).then(
      ({ outcome }) => {
        diagnose('turn ended', { session: this.id, status: outcome.status }, 'info');
        return true;
      },
      (error: unknown) => {
        diagnose('a turn broke', { session: this.id, error: String(error) }, 'error');
        return false;
      },
    );
    const execution = { controller, done };
    this.#executions.add(execution);
    return done.finally(() => this.#executions.delete(execution));
  }

  /** Ends running executions and waits for them. A shutdown leaves open questions for the next server. */
  async stop(by: Extract<Failure, { kind: 'aborted' }>['by']): Promise<void> {
    const executions = [...this.#executions];
    if (by === 'shutdown') this.#options.hosted.questions.leaveOpen();
    for (const { controller } of executions) controller.abort(new DroverError({ kind: 'aborted', by }));
    await Promise.all(executions.map(({ done }) => done));
  }

  answer(requestId: string, answer: UserAnswer): boolean {
    return this.#options.hosted.questions.answer(requestId, answer);
  }

  async close(): Promise<void> {
    await this.#options.hosted.close();
    this.session.bus.close();
    this.#options.onClose();
  }
}
