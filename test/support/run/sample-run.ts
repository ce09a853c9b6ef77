// A realistic run as events: a plan, concurrent workers, failures, a conflict, gates, a throttle, a question. It is
// deterministic, and the status of each task is fixed in advance.

import type { CallLabel, Event, Place, Recorded } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { Usage } from '@drover/protocol/messages';
import { NO_USAGE, sumUsage } from '@drover/core/model/spending/usage';
import type { RunSettings, TaskRow, TaskStatus } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';

const WORKERS = 3;
const GATE = 'pnpm test';
const STARTED_AT = Date.UTC(2027, 0, 15, 9, 30);

/** The fate of a task; `again` fates take two attempts. */
type Fate =
  | TaskStatus
  | 'landed again' // it fails first
  | 'landed after conflict'
  | 'throttled'
  | 'asking';

const FATES: readonly Fate[] = [
  'landed',
  'asking',
  'throttled',
  'failed',
  'landed again',
  'landed after conflict',
  'gate_failed',
  'done',
  'conflict',
  'skipped',
];

export type SampleOptions = {
  readonly tasks: number;
  /** A marker in every text from a model, a tool, a file or a branch. */
  readonly spice?: string;
  readonly cap?: RunSettings['cap'];
};

export type SampleRun = {
  readonly events: readonly Recorded[];
  readonly plan: readonly PlannedTask[];
  readonly statuses: Readonly<Record<string, TaskStatus>>;
  readonly rows: readonly TaskRow[];
};

export const sampleSettings: RunSettings = {
  goal: 'Replace moment with date-fns everywhere',
  model: 'rehearsal/any',
  repository: '/sample',
  base: 'base0000',
  branch: 'main',
  notIncluded: [],
  workers: WORKERS,
  seeding: 'full',
  gates: [GATE],
  deliver: 'branch',
  roundsMax: 3,
  tasksMax: 100,
  attemptsMax: 2,
  taskLimits: { stepsMax: 40, textCallRetriesMax: 1 },
  failFast: false,
};

const USAGE: Usage = { input: 1_200, output: 400, cacheRead: 9_000, cacheWrite: 300 };
const COST = 0.0125;

/** Stamps events like the bus, each a little later than the one before. */
export class Teller {
  readonly events: Recorded[] = [];
  atMs: number;
  readonly run: string;

  constructor(run = 'run_1a2b3c4d5e6f70819203a4b5c6d7e8f9', atMs = STARTED_AT) {
    this.run = run;
    this.atMs = atMs;
  }

  tell(event: Event, place: Place = {}, laterMs = 50): void {
    this.atMs += laterMs;
    const seq = this.events.length + 1;
    this.events.push({ v: 1, seq, at: new Date(this.atMs).toISOString(), run: this.run, ...place, ...event });
  }
}

export function label(worker: number, summary: string): CallLabel {
  const [name = ''] = summary.split(':');
  const callId = `call_${worker}_${summary}`;
  return { callId, toolUseId: 'tool_1', callIndex: 0, index: worker * 100, name, summary };
}

export function sampleRun({ tasks, spice = '', cap }: SampleOptions): SampleRun {
  const plan = planOf(tasks, spice);
  const teller = new Teller();
  const fates = new Map(plan.map(({ id }, at) => [id, FATES[at % FATES.length] ?? 'landed']));
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings, ...(cap !== undefined && { cap }) });
  tellPlanning(teller, plan, spice);

  const rows: TaskRow[] = [];
  for (let first = 0; first < plan.length; first += WORKERS) {
    const wave = plan.slice(first, first + WORKERS);
    const works = wave.map((task, seat) => new Work(task, fates.get(task.id) ?? 'landed', seat + 1, spice));
    interleave(teller, works);
    landAll(teller, works);
    rows.push(...works.map((work) => work.row()));
    const usage = rows.reduce((sum, row) => sumUsage(sum, row.usage), USAGE);
    const cost = rows.reduce((sum, row) => sum + (row.cost ?? 0), COST);
    const spent = cap !== undefined && 'tokens' in cap ? usage.input + usage.output : cost;
    teller.tell({ type: 'budget', usage, spent, reserved: 0, ...(cap !== undefined && { cap }), cost });
  }
  tellEnd(teller, rows, spice);
  return {
    events: teller.events,
    plan,
    statuses: Object.fromEntries(rows.map(({ task, status }) => [task, status])),
    rows,
  };
}

function planOf(tasks: number, spice: string): readonly PlannedTask[] {
  return Array.from({ length: tasks }, (_, at) => ({
    id: `task-${at + 1}`,
    title: `${TITLES[at % TITLES.length]}${spice}`,
    prompt: 'Do it.',
    dependsOn: FATES[at % FATES.length] === 'skipped' ? [`task-${at - 5}`] : [],
    files: [],
    mode: FATES[at % FATES.length] === 'done' ? 'read' : 'write',
  }));
}

const TITLES = [
  'Replace moment in the API client',
  'Billing',
  'Format dates in the weekly report and in everything that is mailed',
  'Calendar',
  'Time zones of the scheduler',
];

function tellPlanning(teller: Teller, plan: readonly PlannedTask[], spice: string): void {
  const place = { worker: 0, turn: 1, step: 1 };
  teller.tell({ type: 'session_start', model: 'rehearsal/any', cwd: '/sample' }, place);
  teller.tell({ type: 'message_start', role: 'assistant' }, place, 900);
  teller.tell({ type: 'text_delta', part: 0, delta: `I look where moment is used.${spice}\n` }, place);
  const grep = label(0, `grep: moment${spice}`);
  teller.tell({ type: 'tool_execution_start', args: {}, ...grep }, place);
  teller.tell({ type: 'tool_execution_end', output: 'a', outputSummary: '12 files', isError: false, ...grep }, place);
  teller.tell({ type: 'usage', usage: USAGE, total: USAGE, cost: COST }, place);
  teller.tell({ type: 'tool_execution_start', args: {}, ...label(0, 'submit_plan: all') }, place, 2_000);
  teller.tell({ type: 'plan_ready', tasks: plan, round: 1, by: 'coordinator' }, place);
}

/** One task from its start to its end. */
class Work {
  readonly task: PlannedTask;
  readonly fate: Fate;
  readonly worker: number;
  readonly spice: string;
  attempts = 0;
  #usage: Usage = NO_USAGE;
  #cost = 0;

  constructor(task: PlannedTask, fate: Fate, worker: number, spice: string) {
    this.task = task;
    this.fate = fate;
    this.worker = worker;
    this.spice = spice;
  }

  /** The events of one attempt, in order. */
  *attempt(): Generator<readonly [Event, Place]> {
    if (this.fate === 'skipped') {
      const reason = `task ${this.task.dependsOn[0]} failed`;
      const end = { status: 'skipped', again: false, reason, files: [], usage: NO_USAGE } as const;
      return yield [{ type: 'task_end', ...end }, { task: this.task.id }];
    }
    this.attempts += 1;
    const { worker, spice } = this;
    const place: Place = { worker, task: this.task.id, attempt: this.attempts, turn: 1, step: 1 };
    yield [{ type: 'task_ready' }, { task: this.task.id }];
    const seed = { seeding: 'full', messages: 4, tokens: 9_000, digest: 'd1' } as const;
    yield [{ type: 'task_start', base: 'base0000', workspace: `/ws/${worker}`, seed }, place];
    yield [{ type: 'session_start', model: 'rehearsal/any', cwd: `/ws/${worker}` }, place];
    if (this.fate === 'throttled')
      yield [{ type: 'throttle_wait', waitMs: 1_500, reason: 'the provider asks to slow down' }, place];
    yield [{ type: 'message_start', role: 'assistant' }, place];
    yield [{ type: 'text_delta', part: 0, delta: `Looking at ${this.task.title}…${spice}\n` }, place];
    const call = label(worker, `shell: pnpm test ${this.task.id}${spice}`);
    if (this.fate === 'asking') yield* this.#question(call, place);
    yield [{ type: 'tool_execution_start', args: {}, ...call }, place];
    const { callId, callIndex, index, name } = call;
    yield [
      { type: 'tool_execution_delta', delta: `ok 1 - ${this.task.id}${spice}\nok 2`, callId, callIndex, index, name },
      place,
    ];
    yield [{ type: 'tool_execution_end', output: 'ok', outputSummary: '2 lines', isError: false, ...call }, place];
    yield [{ type: 'usage', usage: USAGE, total: USAGE, cost: COST }, place];
    this.#usage = sumUsage(this.#usage, USAGE);
    this.#cost += COST;
    yield [this.#end(), place];
  }

  *#question(call: CallLabel, place: Place): Generator<readonly [Event, Place]> {
    const why = 'no rule allows it';
    yield [
      { type: 'permission_request', requestId: `ask_${this.task.id}`, subject: call.summary, why, ...call },
      place,
    ];
    const decision = { requestId: `ask_${this.task.id}`, allowed: true, by: 'user', always: false } as const;
    yield [{ type: 'permission_decision', ...decision, ...call }, place];
  }

  #end(): Event {
    const spent = { usage: USAGE, cost: COST };
    if (this.fails()) {
      const failure = this.#failure();
      const again = this.attempts < 2;
      return { type: 'task_end', status: 'failed', again, failure, files: [], ...spent };
    }
    const end = {
      type: 'task_end',
      status: 'finished',
      again: false,
      summary: `Did it.${this.spice}`,
      ...spent,
    } as const;
    return this.fate === 'done'
      ? { ...end, files: [] }
      : { ...end, files: this.files(), commit: this.commit(), branch: this.branch() };
  }

  /** True if this attempt fails and a second one follows. */
  fails(): boolean {
    return this.fate === 'failed' || (this.fate === 'landed again' && this.attempts === 1);
  }

  conflicts(): boolean {
    return this.fate === 'conflict' || (this.fate === 'landed after conflict' && this.attempts === 1);
  }

  files(): readonly string[] {
    return [`src/${this.task.id}.ts${this.spice}`, 'package.json'];
  }

  commit(): string {
    return `c-${this.task.id}-${this.attempts}`;
  }

  branch(): string {
    return `drover/1a2b/${this.task.id}${this.spice}`;
  }

  status(): TaskStatus {
    switch (this.fate) {
      case 'landed again':
      case 'landed after conflict':
      case 'throttled':
      case 'asking':
        return 'landed';
      case 'landed':
      case 'done':
      case 'failed':
      case 'skipped':
      case 'conflict':
      case 'gate_failed':
      case 'cancelled':
        return this.fate;
    }
  }

  row(): TaskRow {
    const status = this.status();
    const hasWork = !['failed', 'done', 'skipped'].includes(status);
    const reason = this.#reason(status);
    return {
      task: this.task.id,
      title: this.task.title,
      status,
      attempts: this.attempts,
      files: hasWork ? this.files() : [],
      ...(hasWork && { commit: status === 'landed' ? `landed-${this.commit()}` : this.commit() }),
      ...(hasWork && status !== 'landed' && { branch: this.branch() }),
      usage: this.#usage,
      ...(status !== 'skipped' && { cost: this.#cost }),
      waits: this.fate === 'throttled' ? 1_500 : 0,
      ...(status !== 'failed' && status !== 'skipped' && { summary: `Did it.${this.spice}` }),
      ...(reason !== undefined && { reason }),
      ...(status === 'failed' && { failure: this.#failure() }),
    };
  }

  #failure(): Failure {
    return { kind: 'worker.lost', message: `out of memory${this.spice}` };
  }

  #reason(status: TaskStatus): string | undefined {
    if (status === 'failed') return `the worker was lost: out of memory${this.spice}`;
    if (status === 'skipped') return `task ${this.task.dependsOn[0]} failed`;
    if (status === 'conflict') return 'it conflicts in package.json';
    return status === 'gate_failed' ? `${GATE} fails with it` : undefined;
  }
}

/** Interleaves the workers, one step each in turn, and retries failed attempts. */
function interleave(teller: Teller, works: readonly Work[]): void {
  let open = works.map((work) => ({ work, steps: work.attempt() }));
  while (open.length > 0) {
    open = open.flatMap(({ work, steps }) => {
      const { value, done } = steps.next();
      if (done !== true) {
        teller.tell(value[0], value[1], 120);
        return [{ work, steps }];
      }
      return work.fails() && work.attempts < 2 ? [{ work, steps: work.attempt() }] : [];
    });
  }
}

function landAll(teller: Teller, works: readonly Work[]): void {
  const train: Work[] = [];
  for (const work of works.filter(({ fate }) => !['failed', 'done', 'skipped'].includes(fate))) {
    merge(teller, work);
    while (work.conflicts()) {
      const again = work.attempts < 2;
      const conflicts = ['package.json'];
      teller.tell({ type: 'merge_end', outcome: 'conflict', again, conflicts }, { task: work.task.id });
      if (!again) break;
      for (const [event, place] of work.attempt()) teller.tell(event, place);
      merge(teller, work);
    }
    if (!work.conflicts()) train.push(work);
  }
  if (train.length === 0) return;
  const culprits = train.filter(({ fate }) => fate === 'gate_failed');
  if (culprits.length > 0) gate(teller, train, false);
  for (const { task } of culprits) {
    const reason = `${GATE} fails with it`;
    teller.tell({ type: 'merge_end', outcome: 'gate_failed', again: false, reason }, { task: task.id });
  }
  const good = train.filter((work) => !culprits.includes(work));
  if (good.length > 0) gate(teller, good, true);
  for (const work of good)
    teller.tell(
      { type: 'merge_end', outcome: 'landed', again: false, commit: `landed-${work.commit()}` },
      { task: work.task.id },
    );
}

function merge(teller: Teller, work: Work): void {
  teller.tell({ type: 'merge_start', commit: work.commit(), onto: 'head' }, { task: work.task.id });
}

function gate(teller: Teller, works: readonly Work[], passed: boolean): void {
  const tasks = works.map(({ task }) => task.id);
  const tree = `tree-${tasks.join('-')}`;
  const spice = works[0]?.spice ?? '';
  teller.tell({ type: 'gate_start', command: GATE, tree, tasks });
  const output = passed ? 'all passed' : `1 test fails:${spice}\n  expected 2 to be 3\n  at src/report.test.ts:12`;
  teller.tell({ type: 'gate_end', command: GATE, tree, tasks, passed, flaky: false, output, durationMs: 900 }, {}, 900);
}

function tellEnd(teller: Teller, rows: readonly TaskRow[], spice: string): void {
  const answer = `moment is gone, but for what is listed.${spice}`;
  const usage = rows.reduce((sum, row) => sumUsage(sum, row.usage), USAGE);
  const cost = rows.reduce((sum, row) => sum + (row.cost ?? 0), COST);
  const isDone = rows.every(({ status }) => status === 'landed' || status === 'done');
  teller.tell({ type: 'session_end', outcome: 'done', messages: [], usage: USAGE, cost: COST }, { worker: 0 });
  teller.tell({
    type: 'run_end',
    outcome: isDone ? 'done' : 'incomplete',
    exitCode: isDone ? 0 : 3,
    tasks: rows,
    usage,
    cost,
    delivered: {
      deliver: 'branch',
      commit: 'abc1234def',
      branch: 'drover/1a2b/merged',
      next: 'git merge drover/1a2b/merged',
    },
    answer,
  });
}
