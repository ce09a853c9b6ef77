// How far each task of a run is, as a fold over the run's events: what its row shows.

import type { Recorded } from '@drover/core/events';
import type { Usage } from '@drover/core/model/protocol';
import type { TaskRow, TaskStatus } from '@drover/core/task/run';
import type { PlannedTask } from '@drover/core/task/task';
import { failureWords } from './conversation.ts';

const LINE_CHARS_MAX = 300;
const NO_USAGE: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export type TaskState =
  | TaskStatus
  | 'waiting'
  | 'starting'
  | 'thinking'
  | 'running'
  | 'asking'
  | 'throttled'
  | 'retrying'
  | 'merging'
  | 'gate';

export type TaskView = {
  readonly id: string;
  readonly title: string;
  readonly dependsOn: readonly string[];
  readonly state: TaskState;
  readonly doing: string; // what exactly: a tool's summary, a gate's command
  readonly worker: number | undefined;
  readonly attempts: number;
  readonly files: readonly string[];
  readonly commit: string | undefined;
  readonly summary: string | undefined;
  readonly reason: string | undefined;
  readonly usage: Usage;
  readonly cost: number | undefined;
  readonly waitMs: number;
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
  readonly isCached: boolean;
};

const OVER: ReadonlySet<string> = new Set<TaskStatus>([
  'landed',
  'done',
  'failed',
  'skipped',
  'conflict',
  'gate_failed',
  'cancelled',
]);

export function isOver(state: TaskState): state is TaskStatus {
  return OVER.has(state);
}

type Growing = { -readonly [Key in keyof TaskView]: TaskView[Key] } & {
  readonly calls: Map<string, string>; // that run
  readonly questions: Map<string, string>;
  before: { readonly usage: Usage; readonly cost: number | undefined }; // of earlier attempts
};

export class TaskBoard {
  readonly #tasks = new Map<string, Growing>();

  get tasks(): ReadonlyMap<string, TaskView> {
    return this.#tasks;
  }

  plan(tasks: readonly PlannedTask[]): void {
    for (const { id, title, dependsOn } of tasks) {
      const known = this.#tasks.get(id);
      if (known === undefined) this.#tasks.set(id, newTask(id, title, dependsOn));
      else if (known.state !== 'landed' && known.state !== 'done')
        Object.assign(known, { title, dependsOn, state: 'waiting', doing: '', reason: undefined, toMs: undefined });
    }
  }

  take(event: Recorded, clock: number): void {
    const task = event.task === undefined ? undefined : this.#tasks.get(event.task);
    switch (event.type) {
      case 'gate_start':
        for (const id of event.tasks) this.#settle(id, 'gate', event.command);
        return;
      case 'gate_end':
        for (const id of event.tasks) this.#settle(id, 'merging', '');
        return;
      case 'run_end':
        for (const row of event.tasks) this.#finish(row, clock);
        return;
      default:
        if (task !== undefined) takeOf(task, event, clock);
    }
  }

  /** The run goes on after it was stopped. */
  wake(): void {
    for (const task of this.#tasks.values()) {
      if (isOver(task.state) && task.state !== 'cancelled') continue;
      Object.assign(task, { state: 'waiting', doing: '', reason: undefined, toMs: undefined });
      task.calls.clear();
      task.questions.clear();
    }
  }

  #settle(id: string, state: 'gate' | 'merging', doing: string): void {
    const task = this.#tasks.get(id);
    if (task !== undefined && !isOver(task.state)) Object.assign(task, { state, doing });
  }

  /** The run's own last word on it. */
  #finish(row: TaskRow, clock: number): void {
    const task = this.#tasks.get(row.task) ?? newTask(row.task, row.title, []);
    this.#tasks.set(row.task, task);
    const { status: state, files, usage, cost, waits: waitMs, attempts, reason, summary, commit, cached } = row;
    Object.assign(task, { state, doing: '', files, usage, cost, waitMs, attempts, reason, summary, commit });
    task.isCached = cached === true;
    if (task.fromMs !== undefined) task.toMs ??= clock;
  }
}

function newTask(id: string, title: string, dependsOn: readonly string[]): Growing {
  return {
    id,
    title,
    dependsOn,
    state: 'waiting',
    doing: '',
    worker: undefined,
    attempts: 0,
    files: [],
    commit: undefined,
    summary: undefined,
    reason: undefined,
    usage: NO_USAGE,
    cost: undefined,
    waitMs: 0,
    fromMs: undefined,
    toMs: undefined,
    isCached: false,
    calls: new Map(),
    questions: new Map(),
    before: { usage: NO_USAGE, cost: undefined },
  };
}

function takeOf(task: Growing, event: Recorded, clock: number): void {
  switch (event.type) {
    case 'task_ready':
      return;
    case 'task_start':
      return start(task, event, clock);
    case 'task_end':
      return endAttempt(task, event, clock);
    case 'merge_start':
      return be(task, 'merging', '');
    case 'merge_end':
      return endMerge(task, event, clock);
    case 'message_start':
    case 'text_start':
    case 'thinking_start':
    case 'text_delta':
    case 'thinking_delta':
    case 'toolcall_start':
      if (task.calls.size === 0 && task.questions.size === 0) be(task, 'thinking', '');
      return;
    case 'tool_execution_start':
      task.calls.set(event.callId, event.summary);
      return work(task);
    case 'tool_execution_end':
      task.calls.delete(event.callId);
      return work(task);
    case 'permission_request':
      task.questions.set(event.requestId, event.summary);
      return work(task);
    case 'permission_decision':
      task.questions.delete(event.requestId);
      return work(task);
    case 'throttle_wait':
      task.waitMs += event.waitMs;
      return be(task, 'throttled', event.reason);
    case 'retry':
      return be(task, 'retrying', event.reason);
    case 'usage':
      task.usage = sum(task.before.usage, event.total);
      task.cost = event.cost === undefined ? task.cost : (task.before.cost ?? 0) + event.cost;
      return;
    default:
      return;
  }
}

function start(task: Growing, { attempt, worker }: Recorded, clock: number): void {
  const isNew = attempt !== task.attempts;
  if (isNew) task.before = { usage: task.usage, cost: task.cost };
  task.calls.clear();
  task.questions.clear();
  task.attempts = attempt ?? task.attempts + 1;
  task.worker = worker;
  task.fromMs ??= clock;
  task.toMs = undefined;
  task.reason = undefined;
  be(task, 'starting', '');
}

function endAttempt(task: Growing, event: Extract<Recorded, { type: 'task_end' }>, clock: number): void {
  const { status, again, failure, summary, files, commit, usage, cost, cached } = event;
  task.calls.clear();
  task.questions.clear();
  if (status !== 'skipped') {
    task.usage = larger(task.usage, sum(task.before.usage, usage));
    if (cost !== undefined) task.cost = Math.max(task.cost ?? 0, (task.before.cost ?? 0) + cost);
    Object.assign(task, { files, commit, summary });
  }
  task.isCached = cached === true;
  task.reason = event.reason ?? (failure && failureWords(failure));
  if (again) return be(task, 'retrying', task.reason ?? '');
  if (status === 'finished' && commit !== undefined) return be(task, 'merging', '');
  task.toMs = clock;
  be(task, status === 'finished' ? 'done' : status, '');
}

function endMerge(task: Growing, event: Extract<Recorded, { type: 'merge_end' }>, clock: number): void {
  const { outcome, again, commit, conflicts, reason } = event;
  if (outcome === 'landed') {
    task.commit = commit ?? task.commit;
    task.reason = undefined;
  } else task.reason = reason ?? (conflicts && `it conflicts in ${conflicts.join(', ')}`);
  if (again) return be(task, 'retrying', task.reason ?? '');
  task.toMs = clock;
  be(task, outcome, '');
}

function work(task: Growing): void {
  const asked = [...task.questions.values()].at(-1);
  if (asked !== undefined) return be(task, 'asking', asked);
  const called = [...task.calls.values()].at(-1);
  if (called === undefined) return be(task, 'thinking', '');
  be(task, 'running', task.calls.size > 1 ? `${called} (+${task.calls.size - 1})` : called);
}

function be(task: Growing, state: TaskState, doing: string): void {
  task.state = state;
  task.doing = doing.slice(0, LINE_CHARS_MAX);
}

export function sum(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

function larger(a: Usage, b: Usage): Usage {
  const total = (usage: Usage) => usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
  return total(b) < total(a) ? a : b;
}
