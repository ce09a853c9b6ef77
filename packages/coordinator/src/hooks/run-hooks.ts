// The hooks of a run that belong to no task: before and after the run, merges and the delivery.
//
// A hook of the user runs in the repository. A hook of a project runs in a workspace on the commit that it is about,
// and in its sandbox. A hook that blocks before the run or the delivery stops it; after something happened, its words
// are a warning. Hooks before merges are gates; see bin/run/run-options.ts.

import type { Hook, HookPoint } from '@drover/core/hooks/hook';
import { type HookResult, runHooks } from '@drover/core/hooks/hooks';
import { DroverError } from '@drover/core/errors';
import type { Event, Place } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import type { Repository } from '../git/repository.ts';
import type { Slots } from '../slots/slots.ts';

const HOOKS_MS_MAX = 600_000;

type HookedRun = {
  readonly id: string;
  readonly repository: Pick<Repository, 'top'>;
  readonly env: Readonly<Record<string, string>>;
  readonly slots: Pick<Slots, 'take'>;
};

type HookTies = {
  readonly hooks: readonly Hook[];
  /** The commit to check out for a project's hook. */
  readonly commit: () => string;
  readonly warn: (message: string) => void;
};

export class RunHooks {
  readonly #options: HookedRun & HookTies;
  #merges: Promise<void> = Promise.resolve();

  constructor({ id, repository, env, slots }: HookedRun, ties: HookTies) {
    this.#options = { id, repository, env, slots, ...ties };
  }

  /** Throws DroverError if a hook blocks. */
  async before(moment: 'run' | 'delivery', facts: JsonObject, signal: AbortSignal): Promise<void> {
    const block = await this.#run(`before ${moment}`, facts, signal);
    if (block !== undefined) throw new DroverError({ kind: 'hook.blocked', message: block });
  }

  /** Never throws: what it is about has happened. */
  async after(moment: 'run' | 'merge' | 'delivery', facts: JsonObject): Promise<void> {
    try {
      const block = await this.#run(`after ${moment}`, facts, AbortSignal.timeout(HOOKS_MS_MAX));
      if (block !== undefined) this.#options.warn(block);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      this.#options.warn(error.message);
    }
  }

  /** Runs the hooks before the work, the work, and the hooks after it. Throws DroverError if a hook blocks. */
  async around<Result>(moment: 'delivery', facts: JsonObject, work: () => Promise<Result>): Promise<Result> {
    await this.before(moment, facts, AbortSignal.timeout(HOOKS_MS_MAX));
    const result = await work();
    await this.after(moment, facts);
    return result;
  }

  /** Starts the hooks after a merge. */
  take(event: Event, { task }: Place): void {
    if (event.type !== 'merge_end' || event.outcome !== 'landed' || !this.#has('after merge')) return;
    const { commit } = event;
    const facts = { ...(task !== undefined && { task }), ...(commit !== undefined && { commit }) };
    this.#merges = this.#merges.then(() => this.after('merge', facts));
  }

  /** Resolves when the hooks after merges have ended. */
  get merges(): Promise<void> {
    return this.#merges;
  }

  #has(at: HookPoint): boolean {
    return this.#options.hooks.some((hook) => hook.at === at);
  }

  /** Returns the words of a hook that blocks. */
  async #run(at: HookPoint, facts: JsonObject, signal: AbortSignal): Promise<string | undefined> {
    const { id, hooks, repository, env, warn } = this.#options;
    const [own, theirs] = [true, false].map((isOwn) => hooks.filter((hook) => hook.isOwn === isOwn && hook.at === at));
    const tell = ({ block, warnings }: HookResult) => {
      warnings.forEach(warn);
      return block;
    };
    const place = { cwd: repository.top, env, sandbox: undefined };
    const block = tell(await runHooks({ hooks: own ?? [], at, id, facts }, place, signal));
    if (block !== undefined || theirs === undefined || theirs.length === 0) return block;
    const workspace = await this.#options.slots.take({ ...HOOKS, base: this.#options.commit(), signal });
    try {
      const { path: cwd, sandbox } = workspace;
      return tell(await runHooks({ hooks: theirs, at, id, facts }, { cwd, env, sandbox }, signal));
    } finally {
      await workspace.release();
    }
  }
}

// They have a workspace as gates do; no task may have this id.
const HOOKS = { worker: 0, task: 'merged', attempt: 1 };
