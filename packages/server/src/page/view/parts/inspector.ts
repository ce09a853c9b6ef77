// What is chosen, looked at closely: the conversation of a worker or a task, what the task is, and what it changed.

import type { DroverClient } from '@drover/client/client';
import { Conversation } from '../../conversation.ts';
import type { RunFold } from '../../run-fold.ts';
import type { TaskView } from '../../task-board.ts';
import { count, dollars, duration } from '../../words.ts';
import { button, fill, h, mark, say } from '../dom.ts';
import { ConversationList } from './conversation-list.ts';
import { patchList } from './patch-list.ts';
import { STATE_WORDS } from './task-list.ts';

/** A worker is followed from task to task; a task stays. '' is the coordinator. */
export type Choice = { readonly worker: number } | { readonly task: string };

const TABS = ['Conversation', 'Task', 'Diff'] as const;
type Tab = (typeof TABS)[number];

export class Inspector {
  readonly element: HTMLElement;
  readonly #client: DroverClient;
  readonly #run: string;
  readonly #title = h('h2', { is: { id: 'inspector-title' } });
  readonly #tabs: readonly HTMLButtonElement[];
  readonly #body = h('div', { class: 'scroll inspector-body', is: { role: 'tabpanel', id: 'inspector-body' } });
  readonly #conversation: ConversationList;
  readonly #about = h('div', { class: 'about-task' });
  readonly #diff = h('div', { class: 'diff' });
  #tab: Tab = 'Conversation';
  #task = ''; // shown now
  #diffOf = ''; // the commit whose diff is there
  #readAgain: { readonly task: string; readonly conversation: Conversation } | undefined;

  constructor(client: DroverClient, run: string) {
    this.#client = client;
    this.#run = run;
    this.#conversation = new ConversationList('Conversation', () => this.#body);
    this.#tabs = TABS.map((tab) =>
      button(tab, () => this.open(tab), { is: { role: 'tab', 'aria-controls': 'inspector-body' } }),
    );
    const tabs = h(
      'div',
      { class: 'tabs', is: { role: 'tablist' }, on: { keydown: (event) => this.#key(event) } },
      ...this.#tabs,
    );
    this.element = h(
      'section',
      { class: 'panel inspector', is: { 'aria-labelledby': 'inspector-title' } },
      h('header', {}, this.#title, tabs),
      this.#body,
    );
    this.open('Conversation');
  }

  open(tab: Tab): void {
    this.#tab = tab;
    this.#tabs.forEach((each, at) => {
      mark(each, 'aria-selected', TABS[at] === tab ? 'true' : 'false');
      mark(each, 'tabindex', TABS[at] === tab ? 0 : -1);
    });
    fill(this.#body, [{ Conversation: this.#conversation.element, Task: this.#about, Diff: this.#diff }[tab]]);
  }

  reveal(callId: string): void {
    this.open('Conversation');
    this.#conversation.reveal(callId);
  }

  update(fold: RunFold, choice: Choice, elapsedMs: number): void {
    const id = taskOf(fold, choice);
    const task = fold.tasks.get(id);
    this.#task = id;
    const who = 'worker' in choice && choice.worker > 0 ? `Worker ${choice.worker}` : undefined;
    say(this.#title, task === undefined ? (who ?? 'Coordinator') : [who, task.title].filter(Boolean).join(' · '));
    const [, about, diff] = this.#tabs;
    for (const tab of [about, diff]) if (tab !== undefined) tab.disabled = task === undefined;
    if (task === undefined && this.#tab !== 'Conversation') this.open('Conversation');
    if (this.#tab === 'Conversation') this.#converse(fold, id, who);
    else if (task !== undefined && this.#tab === 'Task') fill(this.#about, aboutOf(task, elapsedMs));
    else if (task !== undefined) this.#showDiff(task);
  }

  #converse(fold: RunFold, id: string, who: string | undefined): void {
    const kept = fold.conversationOf(id) ?? (this.#readAgain?.task === id ? this.#readAgain.conversation : undefined);
    const task = fold.tasks.get(id);
    const isLost = kept === undefined && task !== undefined && task.attempts > 0;
    if (isLost) void this.#read(id, fold.seq);
    const idle = id === '' && who !== undefined ? `${who} has nothing to do yet.` : 'Nothing was said yet.';
    this.#conversation.update(kept, isLost ? 'Reading it again…' : idle);
  }

  /** What the page has let go of is in the journal still. */
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

  #showDiff({ id, commit, state }: TaskView): void {
    if (commit === undefined) {
      this.#diffOf = '';
      const waits =
        state === 'done' ? 'This task changed nothing.' : 'There is nothing to show before its work is committed.';
      return fill(this.#diff, [h('p', { class: 'empty' }, waits)]);
    }
    if (this.#diffOf === `${id} ${commit}`) return;
    this.#diffOf = `${id} ${commit}`;
    fill(this.#diff, [h('p', { class: 'empty' }, 'Loading…')]);
    this.#client.diff(this.#run, id).then(
      ({ patch }) => this.#task === id && fill(this.#diff, [patchList(patch)]),
      (error: Error) => this.#task === id && fill(this.#diff, [this.#problem(error)]),
    );
  }

  #problem(error: Error): HTMLElement {
    const again = button('Try again', () => (this.#diffOf = ''));
    return h('div', { class: 'empty', is: { role: 'alert' } }, h('p', {}, error.message), again);
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

/** The task whose conversation belongs to a choice. */
export function taskOf(fold: RunFold, choice: Choice): string {
  if ('task' in choice) return choice.task;
  return fold.lanes.find(({ worker }) => worker === choice.worker)?.span?.task ?? '';
}

function aboutOf(task: TaskView, elapsedMs: number): readonly HTMLElement[] {
  const { usage, cost, fromMs, toMs, files } = task;
  const rows: readonly (readonly [string, string])[] = [
    ['State', STATE_WORDS[task.state]],
    ['Task', task.id],
    ['Waits for', task.dependsOn.join(', ')],
    ['Worker', task.worker === undefined ? '' : String(task.worker)],
    ['Attempts', String(task.attempts)],
    ['Time', fromMs === undefined ? '' : duration((toMs ?? elapsedMs) - fromMs)],
    [
      'Tokens',
      `${count(usage.input + usage.cacheWrite)} in · ${count(usage.cacheRead)} from the cache · ${count(usage.output)} out`,
    ],
    ['Cost', dollars(cost)],
    ['Throttled', duration(task.waitMs)],
    ['Commit', task.commit ?? ''],
  ];
  const shown = rows.filter(([, value]) => value !== '');
  const facts = h(
    'dl',
    { class: 'facts' },
    ...shown.flatMap(([name, value]) => [h('dt', {}, name), h('dd', { class: 'numbers' }, value)]),
  );
  const reason = task.reason === undefined ? [] : [h('p', { class: 'problem' }, task.reason)];
  const summary = task.summary === undefined ? [] : [h('p', { class: 'prose' }, task.summary)];
  const changed =
    files.length === 0
      ? []
      : [h('h3', {}, 'Files'), h('ul', { class: 'files' }, ...files.map((file) => h('li', {}, h('code', {}, file))))];
  return [...reason, ...summary, facts, ...changed];
}
