// The page's state of a run, folded from its events: the RunState that all views share, and lanes, conversations and
// open questions for the page.
//
// It knows no browser. Conversations are kept per task, and the oldest are dropped when there are too many. Then
// `conversationOf` returns undefined, and the caller reads the events again.

import type { OpenQuestion } from '@drover/client/wire';
import { RunState } from '@drover/coordinator/view/state';
import type { Recorded } from '@drover/protocol/events';
import { Conversation } from './conversation.ts';
import { Lane } from './timeline.ts';

const CONVERSATIONS_MAX = 120;
const TRAIN = -1;

export class RunFold {
  readonly state = new RunState();
  /** Merges and gates; without bars where nothing has come to it. */
  readonly train = new Lane(TRAIN);
  readonly #lanes = new Map<number, Lane>();
  readonly #conversations = new Map<string, Conversation>(); // by task; the coordinator's under ''
  readonly #questions = new Map<string, OpenQuestion>();
  #lastMs = 0;
  #seq = 0;

  /** The number of the last event. */
  get seq(): number {
    return this.#seq;
  }

  /** When the last event happened, by the system clock. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** The coordinator's first, then the workers'. */
  get lanes(): readonly Lane[] {
    return [...this.#lanes.values()].toSorted((a, b) => a.worker - b.worker);
  }

  get questions(): readonly OpenQuestion[] {
    return [...this.#questions.values()];
  }

  /** All that was spent waiting for the throttle. */
  get waitMs(): number {
    const { tasks, coordinator } = this.state;
    return tasks.values().reduce((sum, { waitMs }) => sum + waitMs, coordinator.waitMs);
  }

  /** The conversation of a task's agent, or of the coordinator for ''; undefined if it was dropped. */
  conversationOf(task: string): Conversation | undefined {
    return this.#conversations.get(task);
  }

  take(event: Recorded): void {
    this.state.take(event);
    this.#seq = Math.max(this.#seq, event.seq);
    this.#lastMs = Date.parse(event.at);
    const clock = this.state.elapsedMs(this.#lastMs);
    this.#ask(event);
    this.#draw(event, clock);
    if (event.worker !== undefined) this.#listen(event, clock);
  }

  #ask(event: Recorded): void {
    switch (event.type) {
      case 'permission_request':
        this.#questions.set(event.requestId, event);
        return;
      case 'permission_decision':
        this.#questions.delete(event.requestId);
        return;
      case 'task_end':
        for (const [id, { task }] of this.#questions) if (task === event.task) this.#questions.delete(id);
        return;
      case 'run_start':
      case 'run_end':
        this.#questions.clear(); // the process that asked them is gone
        return;
      default:
        return;
    }
  }

  #draw(event: Recorded, clock: number): void {
    switch (event.type) {
      case 'plan_ready':
        // The call that brought it stays open while others work.
        if (event.callId !== undefined) this.#lane(event.worker ?? 0).hold(event.callId);
        return;
      case 'merge_start':
      case 'merge_end':
      case 'gate_start':
      case 'gate_end':
        return this.train.take(event, clock);
      case 'run_start':
      case 'run_end':
        for (const lane of [this.train, ...this.#lanes.values()]) lane.stop(clock);
        return;
      default:
        if (event.worker !== undefined) this.#lane(event.worker).take(event, clock);
    }
  }

  #lane(worker: number): Lane {
    const known = this.#lanes.get(worker);
    if (known !== undefined) return known;
    const lane = new Lane(worker);
    this.#lanes.set(worker, lane);
    return lane;
  }

  #listen(event: Recorded, clock: number): void {
    const key = event.task ?? '';
    let conversation = this.#conversations.get(key);
    if (conversation === undefined) {
      conversation = new Conversation();
      this.#conversations.set(key, conversation);
      this.#letGo();
    }
    conversation.take(event, clock);
  }

  #letGo(): void {
    if (this.#conversations.size <= CONVERSATIONS_MAX) return;
    const oldest = this.#conversations.keys().find((key) => key !== '');
    if (oldest !== undefined) this.#conversations.delete(oldest);
  }
}
