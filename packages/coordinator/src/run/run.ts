// One run: plan, carry out, merge, deliver, end. The only orchestration there is.
//
// The last event is always `run_end`, and it has a row for every task. The user's checkout is compared
// before and after: if it changed, nothing is delivered and everything is kept. Landed work is delivered
// even if other tasks failed, but not after an interruption, since the run can be resumed.

import { join } from 'node:path';
import type { Question } from '@drover/core/agent/calls/calls';
import { turnFailureOfSignal, watchTurnLimits } from '@drover/core/agent/limits';
import type { Bus } from '@drover/core/bus';
import { Instructions } from '@drover/core/conversation/instructions';
import { systemPrompt } from '@drover/core/conversation/prompt';
import { skillCatalogue } from '@drover/core/skills/skill';
import type { Decision, Event, Place, Recorded } from '@drover/protocol/events';
import { DroverError } from '@drover/core/errors';
import type { RetryPolicy } from '@drover/core/model/retry';
import type { Policy } from '@drover/core/permission/policy';
import type { Message } from '@drover/protocol/messages';
import { isDone, type Delivered, type RunSettings } from '@drover/protocol/run';
import { type RunModels } from '@drover/core/task/models';
import { type Extensions, NO_EXTENSIONS } from '@drover/core/hooks/extensions';
import type { RunTask } from '@drover/core/task/task';
import type { PlannedTask } from '@drover/protocol/plan';
import { coordinatorSession } from '../plan/coordinator.ts';
import { builtinRunDefinitions } from '@drover/core/tools/builtin';
import type { ToolServers } from '@drover/core/tools/served/tool-servers';
import type { RunAdmission } from '../admission/admission.ts';
import type { AttemptContext } from '../attempt/attempt.ts';
import { differencesOfRepository, fingerprintRepository } from '../git/audit.ts';
import { openCanary } from '../batch/canary.ts';
import type { RunControl } from '../control/run-control.ts';
import { executePlan, type ExecuteContext, type KnownResult } from './execute.ts';
import {
  runErrorOf,
  runFailureOf,
  mayDeliverRun,
  countLandedLines,
  failureOfRunResult,
  runEnd,
  type Ended,
  type RunEnd,
  type RunEnding,
} from './end.ts';
import type { Limiter } from './dispatch.ts';
import { deliverResult } from '../merge/deliver.ts';
import { checkBaseCommit, trySetupOnBase } from '../merge/base-check.ts';
import { MergeTrain } from '../merge/train.ts';
import { lostRunWords, readAgentHistoryOfRun, type RunHistory, type Writable } from './history.ts';
import { isAttemptKeptInLedger, TaskLedger } from './tasks.ts';
import { approvedPlan, type ApprovePlan, type PlanAnswer } from '../plan/approval.ts';
import { runPlanning, type GivenPlan } from '../plan/planning.ts';
import { FALLBACK, type Repository } from '../git/repository.ts';
import { makeWorkerSeed } from '../plan/seed.ts';
import { planWithAgentModels } from '../plan/agents.ts';
import { RunHooks } from '../hooks/run-hooks.ts';
import { taskRowsOfState, RunState } from '../view/state.ts';
import type { Slots, Workspaces } from '../slots/slots.ts';
import { bestEffort, handled } from '@drover/core/promises';

const DELIVERY_MS_MAX = 300_000;

export type RunOptions = {
  readonly id: string;
  readonly settings: RunSettings;
  readonly repository: Repository;
  readonly slots: Slots;
  readonly workspaces?: (tell: (event: Event, place: Place) => void) => Workspaces;
  readonly models: RunModels;
  readonly servers: ToolServers;
  readonly runTask: RunTask;
  readonly limit?: Limiter; // worker slots that it shares with other runs
  /** Its events go over the bus of the run. */
  readonly admission: (tell: (event: Event, place: Place) => void) => RunAdmission;
  readonly bus: Bus;
  readonly past: RunHistory | undefined;
  /** Reads what the journal holds by now. */
  readonly records: () => Promise<readonly Recorded[]>;
  readonly policy: Pick<Policy, 'rules' | 'yes' | 'contained'>;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
  readonly retry: RetryPolicy;
  readonly env: Readonly<Record<string, string>>; // for child processes
  readonly ignore: readonly string[]; // what searches leave out
  readonly folder: string; // folder of the run's own files: outputs, patches
  readonly redact: (text: string) => string;
  readonly opening?: readonly Message[]; // the conversation that the coordinator of a new run begins with
  /** A plan that is carried out as it is, with no coordinator. */
  readonly plan: readonly PlannedTask[] | undefined;
  /** Results of tasks that an earlier run has found. */
  readonly known: ReadonlyMap<string, KnownResult>;
  readonly control: RunControl; // calls of the user while it works
  readonly warm: (workers: number) => void; // starts so many workers, which will be needed soon
  readonly approve: ApprovePlan | undefined; // undefined: plans run as they are
  readonly exitCodeOf: (ending: RunEnding) => number;
  /** Skills, custom agents and hooks. */
  readonly extensions?: Extensions;
};

export async function run(options: RunOptions, signal: AbortSignal): Promise<RunEnd> {
  const work = new Run(options);
  const { timeoutMs } = options.settings;
  const left = timeoutMs === undefined ? undefined : Math.max(1, timeoutMs - (options.past?.activeMs ?? 0));
  const deadline = watchTurnLimits(
    { stepsMax: 0, textCallRetriesMax: 0, ...(left !== undefined && { timeoutMs: left }) },
    signal,
  );
  try {
    return await work.toTheEnd(deadline.signal);
  } finally {
    deadline.stop();
  }
}

class Run {
  readonly #options: RunOptions;
  readonly #state: RunState;
  readonly #ledger: TaskLedger;
  readonly #startedAt: string;
  #train: MergeTrain | undefined;
  #executing: Promise<void> | undefined;
  #checkingBase: Promise<void> | undefined; // never rejects: a red base stops the run
  readonly #stop = new AbortController();
  readonly #extensions: Extensions;
  readonly #hooks: RunHooks;
  readonly #admission: RunAdmission;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#admission = options.admission((event, place) => this.#tell(event, place));
    const { past, extensions = NO_EXTENSIONS } = options;
    this.#extensions = extensions;
    this.#hooks = new RunHooks(options, {
      hooks: extensions.hooks,
      commit: () => this.#train?.head ?? options.settings.base,
      warn: (message) => this.#tell({ type: 'warning', message }),
    });
    this.#ledger = past?.ledger ?? new TaskLedger();
    this.#startedAt = past?.startedAt ?? new Date().toISOString();
    this.#state = past?.state ?? new RunState();
  }

  async toTheEnd(outer: AbortSignal): Promise<RunEnd> {
    const signal = AbortSignal.any([outer, this.#stop.signal]);
    const { repository, env, slots, settings, servers, past, bus, control } = this.#options;
    const looking = fingerprintRepository(repository, env);
    handled(looking); // awaited below
    slots.reclaim(({ task, attempt }) => isAttemptKeptInLedger(this.#ledger.task(task), attempt));
    // Attempts that were cut off resume in those they have.
    const open = [...this.#ledger.tasks.values()].filter(({ step }) => step.at === 'attempting').length;
    slots.prepare(Math.max(1, (this.#options.workspaces === undefined ? settings.workers : 0) - open));
    const before = await looking;
    const lost = lostRunWords(past?.lostRequests ?? 0); // before the start counts them as spent
    this.#tell({ type: 'run_start', resumed: past !== undefined, ...settings });
    control.open({ ledger: this.#ledger, tell: (event, place) => this.#tell(event, place) });
    for (const message of [lost ?? [], servers.warnings].flat()) this.#tell({ type: 'warning', message });
    const ending: Writable<Ended> = {};
    try {
      for (const message of await slots.warnings()) this.#tell({ type: 'warning', message });
      await this.#hooks.before('run', { resumed: past !== undefined, goal: settings.goal }, signal);
      ending.answer = await this.#work(signal);
      await this.#hooks.merges;
      Object.assign(ending, await failureOfRunResult(this.#state, this.#train));
      const changed = differencesOfRepository(before, await fingerprintRepository(repository, env));
      if (changed.length > 0) throw new DroverError({ kind: 'checkout.changed', paths: changed });
      await slots.auditDependencies();
    } catch (error) {
      ending.failure = signal.aborted ? turnFailureOfSignal(signal) : runFailureOf(error);
    }
    // A call that is cancelled is not waited for long; the tasks it had begun are.
    if (this.#executing !== undefined) await bestEffort(this.#executing);
    try {
      const delivered = mayDeliverRun(this.#state, ending.failure) ? await this.#deliver() : undefined;
      if (delivered !== undefined) ending.delivered = delivered;
    } catch (error) {
      ending.failure ??= runFailureOf(error);
    }
    Object.assign(ending, await countLandedLines(this.#state, slots.store.git));
    control.close();
    await this.#hooks.after('run', { failed: ending.failure !== undefined });
    const end = runEnd(this.#state, ending, this.#options.exitCodeOf);
    this.#tell(end);
    await bus.settled();
    return end;
  }

  // ── planning ────────────────────────────────────────────────────────────────────────────────

  /** Gives the coordinator's last words. */
  async #work(signal: AbortSignal): Promise<string> {
    const { past, settings } = this.#options;
    this.#train = this.#openTrain(signal);
    if (!this.#ledger.isBegun) await trySetupOnBase(this.#options, GATES, signal);
    this.#checkingBase = this.#checkBase(this.#train, signal);
    const tasks = this.#options.plan ?? past?.plans.find(({ by }) => by === 'file')?.tasks;
    if (tasks !== undefined) {
      await this.#execute({ tasks, by: 'file', system: undefined, snapshot: undefined }, signal);
      // Work that ended before the signal still counts.
      const isCut = this.#ledger
        .statuses()
        .values()
        .some((status) => status === 'cancelled');
      if (signal.aborted && isCut) throw new DroverError(turnFailureOfSignal(signal));
      return '';
    }
    const coordinator = past?.coordinator;
    if (coordinator?.ending === 'done') return '';
    const { result, answer } = await runPlanning(
      {
        settings,
        session: coordinatorSession(this.#options, this.#admission, (event, place) => this.#tell(event, place)),
        extensions: this.#extensions,
        policy: { ...this.#options.policy, root: this.#options.repository.top, workspace: false },
        limits: settings.taskLimits,
        servers: this.#options.servers,
        past: coordinator,
        rounds: () => this.#ledger.rounds,
        isBegun: (callId) => past?.plans.some((each) => each.callId === callId) ?? false,
        done: () => new Set([...this.#ledger.statuses()].flatMap(([id, status]) => (isDone(status) ? [id] : []))),
        warn: (message) => this.#tell({ type: 'warning', message }, { worker: 0 }),
        execute: async (submitted, stop) => {
          const given = { ...submitted, system: submitted.snapshot.system };
          const answer = await this.#execute(given, stop).catch((error: unknown) => this.#breakOff(error));
          if ('comment' in answer) return answer;
          return {
            rows: taskRowsOfState(this.#state).filter(({ task }) => answer.tasks.some(({ id }) => id === task)),
          };
        },
      },
      signal,
    );
    await this.#checkingBase;
    // The work is done, and the list of results says what came of it; only the words about it are missing.
    const { outcome } = result;
    if ('failure' in outcome && this.#ledger.rounds === 0) throw new DroverError(outcome.failure);
    return answer;
  }

  /** To the coordinator a plan that broke off would be a failed call; to the run it is the end. */
  #breakOff(error: unknown): never {
    this.#stop.abort(runErrorOf(error));
    throw error;
  }

  /** A resumed run with started workers skips it, unless the base may be red: later gates are compared with it. */
  async #checkBase(train: MergeTrain, signal: AbortSignal): Promise<void> {
    if (this.#ledger.isBegun && this.#options.settings.allowRedBase !== true) return;
    try {
      for (const gate of await checkBaseCommit({ settings: this.#options.settings, train }))
        this.#tell({ type: 'warning', message: `the gate '${gate}' fails on the base commit, so it may stay red` });
    } catch (error) {
      if (!signal.aborted) this.#stop.abort(runErrorOf(error));
    }
  }

  // ── carrying out ────────────────────────────────────────────────────────────────────────────

  /** Returns the tasks that were executed, which the user may have changed, or the user's comment on the plan. */
  async #execute(given: GivenPlan, signal: AbortSignal): Promise<PlanAnswer> {
    const { settings, past, approve } = this.#options;
    const { by, callId } = given;
    const isTold = past?.plans.some((each) => each.callId === callId) === true;
    const asking = { approve, tell: (event: Event) => this.#tell(event) };
    const answer = isTold ? { tasks: this.#ledger.plan } : await approvedPlan(given, asking, signal);
    if ('comment' in answer) return answer;
    const tasks = planWithAgentModels(answer.tasks, this.#extensions);
    if (!isTold) {
      const round = this.#ledger.rounds + 1;
      this.#tell({ type: 'plan_ready', tasks, round, by, ...(callId !== undefined && { callId }) });
    }
    this.#options.warm(Math.min(tasks.length, settings.workers));
    await this.#checkingBase;
    if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
    const seed = makeWorkerSeed(settings.seeding, given.snapshot, { goal: settings.goal, tasks });
    const warn = (message: string) => this.#tell({ type: 'warning', message });
    const conditions: ExecuteContext = {
      context: this.#attemptContext(),
      train: this.#train ?? this.#openTrain(signal),
      base: settings.base,
      workers: settings.workers,
      limit: this.#options.limit,
      failFast: settings.failFast,
      attemptsMax: settings.attemptsMax,
      failuresMax: settings.failuresMax ?? Infinity,
      known: this.#options.known,
      // Resuming a run that its canary stopped means: do the other tasks too.
      canary: past?.hasEnded ? undefined : openCanary(settings, () => taskRowsOfState(this.#state), warn),
      control: this.#options.control,
      ledger: this.#ledger,
      past,
    };
    const system = given.system ?? (await this.#systemPrompt());
    this.#executing = executePlan({ tasks, seed, system }, conditions, signal);
    await this.#executing;
    return answer;
  }

  /** The prompt of all workers where no planning agent has made one. */
  async #systemPrompt(): Promise<string> {
    const { text, leftOut } = await new Instructions(this.#options.repository.top).forStart();
    for (const message of leftOut) this.#tell({ type: 'warning', message });
    return systemPrompt(skillCatalogue(this.#extensions.skills), text);
  }

  #attemptContext(): AttemptContext {
    const { id, slots, runTask, question, models, env, ignore, settings, retry, policy, bus, folder } = this.#options;
    return {
      run: id,
      startedAt: this.#startedAt,
      slots,
      workspaces: this.#options.workspaces?.((event, place) => this.#tell(event, place)) ?? slots,
      runTask,
      admission: this.#admission,
      models,
      servers: this.#options.servers,
      extensions: this.#extensions,
      question,
      tell: (event, place) => this.#tell(event, place),
      settled: () => bus.settled(),
      redact: this.#options.redact,
      caches: () => this.#state.usage.cacheRead + this.#state.usage.cacheWrite > 0,
      common: {
        tools: builtinRunDefinitions(this.#extensions.skills, this.#options.servers.tools),
        served: this.#options.servers.tools,
        env,
        ignore,
        limits: settings.taskLimits,
        retry,
        policy,
        cacheKey: id,
      },
      outputFolder: (task, attempt) => join(folder, 'outputs', `${task}-${attempt}`),
      historyOf: async (whose, seed) => readAgentHistoryOfRun(await this.#options.records(), whose, seed),
    };
  }

  #openTrain(signal: AbortSignal): MergeTrain {
    const { id, repository, slots, settings, past, env, bus, folder } = this.#options;
    return new MergeTrain(
      {
        git: slots.store.git,
        commit: slots.store.commit,
        run: id,
        base: settings.base,
        head: this.#ledger.head ?? settings.base,
        env,
        identity: repository.identity,
        // Older journals name no author, and their merges must give the same commits again.
        isCoAuthored: settings.author !== undefined && settings.author.email !== FALLBACK.email,
        when: this.#startedAt,
        gates: settings.gates,
        allowRedBase: settings.allowRedBase === true,
        checkout: (base, stop) => slots.take({ ...GATES, base, signal: stop }),
        outputFolder: join(folder, 'outputs', 'gates'),
        knownGates: past?.gates ?? new Map(),
        emit: (event, place) => this.#tell(event, place),
        settled: () => bus.settled(),
      },
      signal,
    );
  }

  // ── the end ─────────────────────────────────────────────────────────────────────────────────

  // Not by the run's signal: what landed before the deadline is delivered after it.
  async #deliver(): Promise<Delivered> {
    const { id, repository, slots, settings, folder, env } = this.#options;
    const signal = AbortSignal.timeout(DELIVERY_MS_MAX);
    const facts = { deliver: settings.deliver, commit: this.#train?.head ?? settings.base };
    const work = () =>
      deliverResult(
        {
          repository,
          store: slots.store.gitDir,
          run: id,
          base: settings.base,
          env,
          merged: this.#train?.head ?? settings.base,
          kept: taskRowsOfState(this.#state).flatMap(({ task, status, commit }) =>
            status === 'landed' || commit === undefined ? [] : [{ task, commit }],
          ),
          deliver: settings.deliver,
          ...(settings.resultBranch !== undefined && { resultBranch: settings.resultBranch }),
          patchFolder: join(folder, 'patches'),
        },
        signal,
      );
    return this.#hooks.around('delivery', facts, work);
  }

  #tell(event: Event, place: Place = {}): void {
    const at = new Date().toISOString();
    this.#ledger.take(event, place);
    this.#hooks.take(event, place);
    this.#state.take({ v: 1, seq: 0, at, run: this.#options.id, ...place, ...event } as Recorded);
    this.#options.bus.emit(event, place);
  }
}

// Gates have a workspace like a task's; no task may have this id.
const GATES = { worker: 0, task: 'merged', attempt: 1 };
