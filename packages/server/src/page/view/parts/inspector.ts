// The inspector of the selected worker or task: its conversation, its prompt, and its changes.

import type { DroverClient } from '@drover/client/client';
import type { TaskProgress } from '@drover/coordinator/view/state';
import { Conversation } from '../../conversation.ts';
import type { RunFold } from '../../run-fold.ts';
import { pageErrorWords } from '../app.ts';
import { domButton, fillDomElement, h, markDomElement, setDomText } from '../dom.ts';
import { ConversationList } from './conversation-list.ts';
import { runPartPatchList } from './run/patch-list.ts';
import type { RunStanding } from './run/run-head.ts';
import { TaskDesk } from './run/task-desk.ts';
import { runPartFactsOfTask, runPartTaskFacts } from './run/task-facts.ts';

/** A worker is followed from task to task; a task stays. Worker 0 is the coordinator. */
export type Choice = { readonly worker: number } | { readonly task: string };

const TABS = ['Conversation', 'Task', 'Diff'] as const;
type Tab = (typeof TABS)[number];

type InspectorOptions = {
  readonly client: DroverClient;
  readonly run: string;
  readonly retry: (task: string) => Promise<void>;
};

/** The facts about the run at this moment. */
export type RunMoment = { readonly elapsedMs: number; readonly standing: RunStanding };

export class Inspector {
  readonly element: HTMLElement;
  readonly #client: DroverClient;
  readonly #run: string;
  readonly #title = h('h2', { is: { id: 'inspector-title' } });
  readonly #tabs = TABS.map((tab) =>
    domButton(tab, () => this.open(tab), { is: { role: 'tab', id: `tab-${tab}`, 'aria-controls': 'inspector-body' } }),
  );
  readonly #body = h('div', { class: 'scroll inspector-body', is: { role: 'tabpanel', id: 'inspector-body' } });
  readonly #conversation = new ConversationList('Conversation', this.#body);
  readonly #about = h('div', { class: 'about-task' });
  readonly #diff = h('div', { class: 'diff', is: { tabindex: 0, role: 'group', 'aria-label': 'What it changed' } });
  readonly #desk: TaskDesk;
  #tab: Tab = 'Conversation';
  #task = ''; // shown now
  #aboutShown = '';
  #diffShown = '';
  #readAgain: { readonly task: string; readonly conversation: Conversation } | undefined;

  constructor({ client, run, retry }: InspectorOptions) {
    this.#client = client;
    this.#run = run;
    this.#desk = new TaskDesk({
      message: (task, text) => client.messageTask(run, { task, text }),
      cancel: (task) => client.cancelTask(run, task),
      retry,
    });
    const keys = { keydown: (event: KeyboardEvent) => this.#key(event) };
    const tabs = h(
      'div',
      { class: 'tabs', is: { role: 'tablist', 'aria-label': 'What to see of it' }, on: keys },
      ...this.#tabs,
    );
    this.element = h(
      'section',
      { class: 'panel inspector', is: { 'aria-labelledby': 'inspector-title' } },
      h('header', {}, this.#title, tabs),
      this.#desk.element,
      this.#body,
    );
    this.open('Conversation');
  }

  open(tab: Tab): void {
    this.#tab = tab;
    this.#tabs.forEach((each, at) => {
      markDomElement(each, 'aria-selected', TABS[at] === tab ? 'true' : 'false');
      markDomElement(each, 'tabindex', TABS[at] === tab ? 0 : -1);
    });
    markDomElement(this.#body, 'aria-labelledby', `tab-${tab}`);
    fillDomElement(this.#body, [
      { Conversation: this.#conversation.element, Task: this.#about, Diff: this.#diff }[tab],
    ]);
    if (tab !== 'Conversation') this.#body.scrollTop = 0;
  }

  /** Brings a call of the conversation into sight. */
  reveal(callId: string): void {
    this.open('Conversation');
    this.#conversation.reveal(callId);
  }

  update(fold: RunFold, choice: Choice, { elapsedMs, standing }: RunMoment): void {
    const id = taskOfInspectorPart(fold, choice);
    const task = fold.state.tasks.get(id);
    this.#task = id;
    this.#desk.update(task, standing);
    const who = 'worker' in choice && choice.worker > 0 ? `Worker ${choice.worker}` : undefined;
    setDomText(
      this.#title,
      task === undefined ? (who ?? 'Coordinator') : [who, task.plan.title].filter(Boolean).join(' · '),
    );
    this.#tabs.forEach((tab, at) => (tab.disabled = at > 0 && task === undefined));
    if (task === undefined && this.#tab !== 'Conversation') this.open('Conversation');
    if (this.#tab === 'Conversation') this.#converse(fold, id, who);
    else if (task !== undefined && this.#tab === 'Task') this.#tell(task, elapsedMs);
    else if (task !== undefined) this.#showDiff(task);
  }

  #converse(fold: RunFold, id: string, who: string | undefined): void {
    const kept = fold.conversationOf(id) ?? (this.#readAgain?.task === id ? this.#readAgain.conversation : undefined);
    const isLost = kept === undefined && (fold.state.tasks.get(id)?.attempts ?? 0) > 0;
    if (isLost)
      void this.#read(id, fold.seq).catch((error: unknown) =>
        this.#conversation.update(undefined, pageErrorWords(error)),
      );
    const idle = id === '' && who !== undefined ? `${who} has nothing to do yet.` : 'Nothing was said yet.';
    this.#conversation.update(kept, isLost ? 'Reading it again…' : idle);
  }

  /** Dropped entries are still in the journal. */
  async #read(task: string, upTo: number): Promise<void> {
    const conversation = new Conversation();
    this.#readAgain = { task, conversation };
    let firstMs: number | undefined;
    for await (const event of this.#client.runEvents(this.#run)) {
      firstMs ??= Date.parse(event.at);
      if (event.task === task && event.worker !== undefined) conversation.take(event, Date.parse(event.at) - firstMs);
      if (event.seq >= upTo || this.#task !== task) return;
    }
  }

  #tell(task: TaskProgress, elapsedMs: number): void {
    const facts = runPartFactsOfTask(task, elapsedMs);
    const key = JSON.stringify([facts, task.reason, task.summary]);
    if (this.#aboutShown === key) return;
    this.#aboutShown = key;
    fillDomElement(this.#about, runPartTaskFacts(task, facts));
  }

  #showDiff({ id, commit, state, failure }: TaskProgress): void {
    const key = `${id} ${commit ?? state}`;
    if (this.#diffShown === key) return;
    this.#diffShown = key;
    if (commit === undefined) {
      const isUnchanged = state === 'done' || (failure?.kind === 'gate.failed' && failure.unchanged === true);
      const why = isUnchanged ? 'This task changed nothing.' : 'There is nothing to show before its work is committed.';
      return fillDomElement(this.#diff, [h('p', { class: 'empty' }, why)]);
    }
    fillDomElement(this.#diff, [h('p', { class: 'empty' }, 'Loading…')]);
    const isStill = () => this.#diffShown === key;
    this.#client.diff(this.#run, id).then(
      ({ patch }) => isStill() && fillDomElement(this.#diff, [runPartPatchList(patch)]),
      (error: unknown) => isStill() && fillDomElement(this.#diff, [this.#problem(pageErrorWords(error))]),
    );
  }

  #problem(text: string): HTMLElement {
    const again = domButton('Try again', () => (this.#diffShown = ''));
    return h('div', { class: 'empty', is: { role: 'alert' } }, h('p', {}, text), again);
  }

  #key(event: KeyboardEvent): void {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const usable = this.#tabs.filter((tab) => !tab.disabled);
    const next = usable[(usable.findIndex((tab) => tab === event.target) + step + usable.length) % usable.length];
    if (step === 0 || next === undefined) return;
    next.focus();
    next.click();
  }
}

/** The task whose conversation belongs to a choice; '' is the coordinator's. */
export function taskOfInspectorPart(fold: RunFold, choice: Choice): string {
  if ('task' in choice) return choice.task;
  return fold.lanes.find(({ worker }) => worker === choice.worker)?.span?.task ?? '';
}
