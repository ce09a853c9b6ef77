// A run as a listr2 list. Each piece of work is a listr2 task, and its promise settles when the work ends.
//
//   coordinator              makes a plan
//     task-1                 its worker
//       merge
//         gate: pnpm test
//     task-2
//     coordinator            reads the results, and plans again or ends
//
// A task added to a running listr2 list never starts. So the work that follows becomes a subtask of the work before.

import type { RunState, TaskProgress } from '@drover/coordinator/view/state';
import type { Shown } from '@drover/core/bus';
import { Listr, ListrEventType, type ListrTask } from 'listr2';
import { DashboardRenderer, type Drawing } from './renderer.ts';

export class RunList {
  readonly listr: Listr<unknown, typeof DashboardRenderer>;
  readonly #state: RunState;
  readonly #open = new Map<string, Work>(); // by task: the work on it that has not ended
  #turn = new Work('coordinator', 'turn');

  constructor(drawing: Drawing) {
    this.#state = drawing.state;
    this.listr = new Listr<unknown, typeof DashboardRenderer>([this.#turn.task], {
      renderer: DashboardRenderer,
      rendererOptions: drawing,
      registerSignalListeners: false, // drover has its own
      exitOnError: false, // other tasks continue when one fails
    });
  }

  /** Resolves when all work has ended and the renderer has drawn the last picture. */
  async run(): Promise<void> {
    await this.listr.run();
  }

  /** Starts and ends work as the event says. The state has taken the event already. */
  take(event: Shown): void {
    switch (event.type) {
      case 'run_start':
      case 'plan_ready':
        this.#plan();
        break;
      case 'task_ready':
      case 'task_start':
        if (event.task !== undefined && !this.#open.has(event.task)) this.#plan();
        this.#advance(event.task);
        break;
      case 'task_end':
      case 'merge_start':
      case 'merge_end':
        this.#advance(event.task);
        break;
      case 'gate_start':
      case 'gate_end':
        for (const id of event.tasks) this.#advance(id);
        break;
      default:
    }
    this.refresh();
  }

  /** Tells the renderer that its picture is stale. */
  refresh(): void {
    this.listr.events.emit(ListrEventType.SHOULD_REFRESH_RENDER);
  }

  /** Ends all work that is still open: the run is over, or it is shown no longer. */
  end(): void {
    for (const id of this.#open.keys()) this.#advance(id);
    for (const work of this.#open.values()) work.end({ failure: 'it was not finished' });
    this.#open.clear();
    this.#turn.end();
  }

  #plan(): void {
    const fresh = [...this.#state.tasks.values()].filter(
      ({ id, endedMs }) => endedMs === undefined && !this.#open.has(id),
    );
    if (fresh.length === 0) return;
    for (const task of fresh) this.#open.set(task.id, new Work(task.id, listedTaskStage(task)));
    const turn = new Work('coordinator', 'turn');
    this.#turn.end({ next: [...fresh.flatMap(({ id }) => this.#open.get(id) ?? []), turn] });
    this.#turn = turn;
  }

  #advance(id = ''): void {
    const [task, work] = [this.#state.tasks.get(id), this.#open.get(id)];
    if (task === undefined || work === undefined) return;
    if (task.endedMs !== undefined) {
      this.#open.delete(id);
      work.end(task.state === 'landed' || task.state === 'done' ? {} : { failure: task.reason ?? task.state });
    } else if (listedTaskStage(task) !== work.stage) {
      const next = new Work(listedTaskStage(task), listedTaskStage(task));
      this.#open.set(id, next);
      work.end({ next: [next] });
    }
  }
}

function listedTaskStage({ state, attempts, isOpen, doing }: TaskProgress): string {
  if (state === 'merging') return 'merge';
  return state === 'gate' ? `gate: ${doing}` : `attempt ${isOpen ? attempts : attempts + 1}`;
}

type Ending = { readonly next?: readonly Work[]; readonly failure?: string };

/** One listr2 task. It has its promise from the beginning, since listr2 may start it after it has ended. */
class Work {
  readonly stage: string;
  readonly task: ListrTask<unknown, typeof DashboardRenderer>;
  readonly #ended = Promise.withResolvers<Ending>();

  constructor(title: string, stage: string) {
    this.stage = stage;
    this.task = {
      title,
      task: async (_, self) => {
        const { next, failure } = await this.#ended.promise;
        if (failure !== undefined) throw new Error(failure);
        return (
          next &&
          self.newListr(
            next.map(({ task }) => task),
            { concurrent: true },
          )
        );
      },
    };
  }

  end(ending: Ending = {}): void {
    this.#ended.resolve(ending);
  }
}
