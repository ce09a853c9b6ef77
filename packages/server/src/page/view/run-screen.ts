// A run, live or long over: its head, its questions, the timeline, the tasks, and whatever is chosen of them.

import { RunFold } from '../run-fold.ts';
import { type App, type Screen, words } from './app.ts';
import { announce, h, say, show } from './dom.ts';
import { Feed } from './feed.ts';
import { Beat, Frame, wantsLessMotion } from './frame.ts';
import { type Choice, Inspector, taskOf } from './parts/inspector.ts';
import { QuestionCards } from './parts/question-cards.ts';
import { RunHead, type Standing } from './parts/run-head.ts';
import { TaskList } from './parts/task-list.ts';
import { TimelinePanel } from './parts/timeline-panel.ts';

const FIGURES_MS = 200;
const TICK_MS = 100;
const TICK_MS_CALM = 1_000;

export function runScreen(app: App, id: string): Screen {
  const screen = new RunScreen(app, id);
  return { element: screen.element, title: () => screen.title, stop: () => screen.stop() };
}

class RunScreen {
  readonly element: HTMLElement;
  readonly #app: App;
  readonly #id: string;
  readonly #fold = new RunFold();
  readonly #head: RunHead;
  readonly #questions: QuestionCards;
  readonly #timeline: TimelinePanel;
  readonly #tasks: TaskList;
  readonly #inspector: Inspector;
  readonly #problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
  readonly #frame = new Frame((nowMs) => this.#draw(nowMs));
  readonly #figures = new Beat(FIGURES_MS);
  readonly #feed: Feed;
  readonly #stops = new AbortController();
  readonly #sizes: ResizeObserver;
  #choice: Choice = { worker: 0 };
  #isChosen = false; // by a person
  #hasEnded = false; // nothing more comes

  constructor(app: App, id: string) {
    this.#app = app;
    this.#id = id;
    this.#head = new RunHead(() => void this.#cancel());
    this.#questions = new QuestionCards((request, answer) => app.client.answerRun(id, request, answer));
    this.#timeline = new TimelinePanel({
      onWorker: (worker) => this.#choose({ worker }),
      onBar: (lane, bar) => this.#openBar(lane.worker, bar.task, bar.callId),
      onChange: () => this.#frame.ask(),
    });
    this.#tasks = new TaskList((task) => this.#choose({ task }));
    this.#inspector = new Inspector(app.client, id);
    const parts = [this.#problem, this.#questions.element, this.#timeline.element];
    const lower = h('div', { class: 'columns' }, this.#tasks.element, this.#inspector.element);
    this.element = h('div', { class: 'screen run' }, this.#head.element, ...parts, lower);
    this.#feed = new Feed({
      events: (options) => app.client.runEvents(id, options),
      take: (event) => {
        this.#fold.take(event);
        if (event.type === 'run_end') this.#over();
        this.#frame.ask();
      },
      onConnection: app.onConnection,
      onEnd: (error) => this.#end(error),
    });
    this.#sizes = new ResizeObserver(() => this.#restyle());
    this.#sizes.observe(this.element);
    const { signal } = this.#stops;
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#restyle(), { signal });
    this.element.addEventListener('click', () => this.#now(), { signal });
    this.#frame.ask();
  }

  get title(): string {
    return this.#fold.settings?.goal ?? 'run';
  }

  stop(): void {
    this.#feed.stop();
    this.#frame.stop();
    this.#stops.abort();
    this.#sizes.disconnect();
  }

  #draw(nowMs: number): void {
    const standing = this.#standing();
    const wallMs = standing === 'live' ? this.#feed.now() : this.#fold.lastMs;
    const elapsedMs = this.#fold.elapsedMs(wallMs);
    if (!this.#isChosen) this.#choice = this.#mostWorthSeeing();
    if (this.#figures.due(nowMs)) {
      this.#head.update(this.#fold, elapsedMs, standing);
      this.#tasks.update(this.#fold, elapsedMs, taskOf(this.#fold, this.#choice) || undefined, standing === 'live');
      const asked = standing === 'live' ? this.#fold.questions : [];
      this.#questions.update(
        asked,
        ({ task, worker }) => this.#fold.tasks.get(task ?? '')?.title ?? `Worker ${worker ?? 0}`,
      );
    } else this.#frame.askIn(FIGURES_MS);
    const worker = 'worker' in this.#choice ? this.#choice.worker : this.#fold.tasks.get(this.#choice.task)?.worker;
    this.#timeline.update(this.#fold, elapsedMs, standing === 'live', worker);
    this.#inspector.update(this.#fold, this.#choice, elapsedMs);
    if (standing === 'live') this.#frame.askIn(wantsLessMotion() ? TICK_MS_CALM : TICK_MS);
  }

  #standing(): Standing {
    if (this.#fold.end !== undefined) return 'ended';
    return !this.#hasEnded && this.#app.isLive(this.#id) ? 'live' : 'stopped';
  }

  /** Until somebody chooses, the first worker that is at work, else the coordinator. */
  #mostWorthSeeing(): Choice {
    const busy = this.#fold.lanes.find(
      ({ worker, span }) => worker > 0 && span !== undefined && span.toMs === undefined,
    );
    return { worker: busy?.worker ?? 0 };
  }

  #choose(choice: Choice): void {
    this.#choice = choice;
    this.#isChosen = true;
    this.#now();
  }

  #openBar(worker: number, task: string, callId: string): void {
    this.#choose(task === '' ? { worker: Math.max(0, worker) } : { task });
    this.#inspector.open('Conversation');
    this.#inspector.update(this.#fold, this.#choice, 0);
    if (callId !== '') this.#inspector.reveal(callId);
  }

  /** Whoever presses something sees what comes of it with the next frame. */
  #now(): void {
    this.#figures.reset();
    this.#frame.ask();
  }

  #restyle(): void {
    this.#timeline.restyle();
    this.#now();
  }

  #over(): void {
    const { end } = this.#fold;
    if (end !== undefined) announce(`The run has ended: ${end.outcome}`);
    this.#app.refresh();
    this.#figures.reset();
  }

  #end(error: unknown): void {
    this.#hasEnded = true;
    if (error !== undefined) this.#app.onProblem(error);
    this.#now();
  }

  async #cancel(): Promise<void> {
    if (!confirm('Cancel this run? What has landed stays; what is under way is given up.')) return;
    this.#head.isCancelling();
    await this.#app.client.cancelRun(this.#id).catch((error: unknown) => {
      show(this.#problem, true);
      say(this.#problem, words(error));
    });
  }
}
