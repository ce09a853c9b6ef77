// A run, live or long over: its head, its questions, the timeline, the tasks, and whatever is chosen of them.

import type { Delivered } from '@drover/protocol/run';
import type { RecordedRunEnd } from '@drover/coordinator/view/state';
import { RunFold } from '../../run-fold.ts';
import { isAnswerable, type PageApp, type Screen, titled, pageErrorWords } from '../app.ts';
import { announceInDom, h, markDomElement, setDomText, showDomElement } from '../dom.ts';
import { Feed } from '../feed.ts';
import { Beat, Frame, wantsLessMotion } from '../frame.ts';
import { askToConfirmPart } from '../parts/confirmed.ts';
import { type Choice, Inspector, taskOfInspectorPart } from '../parts/inspector.ts';
import { QuestionCards } from '../parts/question-cards.ts';
import { PlanCard } from '../parts/run/plan-card.ts';
import { RunActions } from '../parts/run/run-actions.ts';
import { RunHead, type RunStanding } from '../parts/run/run-head.ts';
import { TaskList } from '../parts/run/task-list.ts';
import { TimelinePanel } from '../parts/timeline/timeline-panel.ts';

const FIGURES_MS = 200;
const TICK_MS = 100;
const NEWS_MS = 10_000; // what is older is not news
const TICK_MS_CALM = 1_000;

const NO_TASKS: Readonly<Record<RunStanding, string>> = {
  loading: '',
  live: 'The coordinator is making a plan. Its tasks appear here.',
  stopped: 'It was stopped before there was a plan.',
  ended: 'This run has no tasks.',
};

export function runScreen(app: PageApp, id: string): Screen {
  const screen = new RunScreen(app, id);
  return { element: screen.element, title: () => screen.title, stop: () => screen.stop() };
}

class RunScreen {
  readonly element: HTMLElement;
  readonly #app: PageApp;
  readonly #id: string;
  readonly #fold = new RunFold();
  readonly #head = new RunHead(() => void this.#cancel());
  readonly #questions: QuestionCards;
  readonly #plan: PlanCard;
  readonly #actions: RunActions;
  readonly #timeline: TimelinePanel;
  readonly #tasks = new TaskList((task) => this.#choose({ task }));
  readonly #inspector: Inspector;
  readonly #problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
  readonly #frame = new Frame((nowMs) => this.#draw(nowMs));
  readonly #figures = new Beat(FIGURES_MS);
  #feed: Feed;
  #lastSeq = 0;
  readonly #stops = new AbortController();
  readonly #sizes = new ResizeObserver(() => this.#restyle());
  #choice: Choice = { worker: 0 };
  #isChosen = false; // by a person
  #hasEnded = false; // nothing more comes

  constructor(app: PageApp, id: string) {
    this.#app = app;
    this.#id = id;
    this.#questions = new QuestionCards((request, answer) => app.client.answerRun(id, request, answer));
    this.#timeline = new TimelinePanel({
      onWorker: (worker) => this.#choose({ worker }),
      onBar: (worker, { task, callId }) => this.#openBar(worker, task, callId),
      onChange: () => this.#frame.ask(),
    });
    this.#inspector = new Inspector({
      client: app.client,
      run: id,
      retry: (task) => this.#again(() => app.client.retryRun(id, { tasks: [task], approve: true })),
    });
    this.#plan = new PlanCard((answer) => app.client.answerPlan(id, answer));
    this.#actions = new RunActions({
      resume: () => this.#again(() => app.client.resumeRun(id, { approve: true })),
      retry: () => this.#again(() => app.client.retryRun(id, { approve: true })),
      merge: async () => deliveredWordsOnScreen((await app.client.mergeRun(id)).delivered),
      diff: async () => (await app.client.runDiff(id)).patch,
    });
    const asked = [this.#plan.element, this.#questions.element];
    const parts = [this.#head.element, this.#problem, this.#actions.element, ...asked, this.#timeline.element];
    const lower = h('div', { class: 'columns' }, this.#tasks.element, this.#inspector.element);
    this.element = h('div', { class: 'screen run' }, ...parts, lower);
    this.#feed = this.#follow();
    this.#sizes.observe(this.element);
    const { signal } = this.#stops;
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#restyle(), { signal });
    this.element.addEventListener('click', () => this.#now(), { signal });
    this.#frame.ask();
  }

  #follow(): Feed {
    const { client, onConnection } = this.#app;
    return new Feed({
      events: (options) => client.runEvents(this.#id, { ...options, after: this.#lastSeq }),
      take: (event) => {
        this.#lastSeq = event.seq;
        this.#fold.take(event);
        if (event.type === 'run_end') this.#over(event);
        if (isAnswerable(event.type) && this.#isNews(event.at)) this.#app.refresh();
        this.#frame.ask();
      },
      onConnection,
      onEnd: (error) => this.#end(error),
    });
  }

  /** Resumes or retries. A run that had ended has later events, so its stream is opened again. */
  async #again(begin: () => Promise<unknown>): Promise<void> {
    await begin();
    if (!this.#hasEnded) return; // a task is retried while the run is at work
    this.#feed.stop();
    this.#hasEnded = false;
    this.#app.refresh();
    this.#feed = this.#follow();
    this.#now();
  }

  get title(): string {
    const { settings } = this.#fold.state;
    return settings === undefined ? 'run' : titled(settings.goal, settings.repository);
  }

  stop(): void {
    this.#feed.stop();
    this.#frame.stop();
    this.#stops.abort();
    this.#sizes.disconnect();
  }

  #draw(nowMs: number): void {
    const { state, lastMs } = this.#fold;
    const standing = this.#standing();
    const isLive = standing === 'live';
    markDomElement(this.element, 'data-standing', standing);
    const wallMs = isLive ? Math.max(this.#feed.now(), lastMs) : lastMs;
    const elapsedMs = state.elapsedMs(wallMs);
    if (!this.#isChosen) this.#choice = this.#mostWorthSeeing();
    if (this.#figures.due(nowMs)) {
      this.#head.update(this.#fold, wallMs, standing);
      this.#tasks.update(state, elapsedMs, {
        chosen: taskOfInspectorPart(this.#fold, this.#choice),
        empty: NO_TASKS[standing],
      });
      this.#plan.update(isLive ? state.proposed : undefined);
      this.#actions.update(state, standing === 'ended' || standing === 'stopped');
      this.#questions.update(isLive ? this.#fold.questions : [], ({ task, worker = 0 }) => {
        return state.tasks.get(task ?? '')?.plan.title ?? (worker === 0 ? 'The coordinator' : `Worker ${worker}`);
      });
    } else this.#frame.askIn(FIGURES_MS);
    const worker = 'worker' in this.#choice ? this.#choice.worker : state.tasks.get(this.#choice.task)?.worker;
    this.#timeline.update(this.#fold, elapsedMs, { isLive, worker });
    this.#inspector.update(this.#fold, this.#choice, { elapsedMs, standing });
    if (isLive) this.#frame.askIn(wantsLessMotion() ? TICK_MS_CALM : TICK_MS);
  }

  #standing(): RunStanding {
    const { end, settings } = this.#fold.state;
    if (end !== undefined) return 'ended';
    if (settings === undefined && !this.#hasEnded) return 'loading';
    return !this.#hasEnded && this.#app.isLive(this.#id) ? 'live' : 'stopped';
  }

  /** Until the user chooses, the first worker that is at work, else the coordinator. */
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
    this.#inspector.update(this.#fold, this.#choice, { elapsedMs: 0, standing: this.#standing() });
    this.#inspector.reveal(callId);
  }

  /** A click shows its effect in the next frame. */
  #now(): void {
    this.#figures.reset();
    this.#frame.ask();
  }

  #restyle(): void {
    this.#timeline.restyle();
    this.#now();
  }

  #over({ at, outcome }: RecordedRunEnd): void {
    if (this.#isNews(at)) announceInDom(`The run has ended: ${outcome}`);
    this.#head.isCancelling(false);
    showDomElement(this.#problem, false);
    this.#app.refresh();
    this.#figures.reset();
  }

  #isNews(at: string): boolean {
    return this.#feed.now() - Date.parse(at) < NEWS_MS;
  }

  #end(error: unknown): void {
    this.#hasEnded = true;
    if (error !== undefined) this.#app.onProblem(error);
    this.#now();
  }

  async #cancel(): Promise<void> {
    const question = 'Cancel this run? What has landed stays, and the run can be resumed later.';
    if (!(await askToConfirmPart(question, { yes: 'Cancel it', no: 'Let it run' }))) return;
    this.#head.isCancelling(true);
    try {
      await this.#app.client.cancelRun(this.#id);
    } catch (error) {
      this.#head.isCancelling(false);
      showDomElement(this.#problem, true);
      setDomText(this.#problem, pageErrorWords(error));
    }
  }
}

function deliveredWordsOnScreen({ deliver, branch, patches = [], commit }: Delivered): string {
  if (deliver === 'patch') return `What landed is in ${patches.length} patches.`;
  return `What landed is ${deliver === 'merge' ? 'merged into' : 'on branch'} ${branch ?? '?'} (${commit.slice(0, 8)}).`;
}
