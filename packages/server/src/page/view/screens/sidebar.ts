// The runs and sessions there are: what is at work first, then the newest.

import type { RunRow, SessionRow } from '@drover/client/wire';
import { dollars, timeAgo } from '../../words.ts';
import { fill, h, mark, say, show, stateMark } from '../dom.ts';

const ROWS_MAX = 200;

export type SidebarLists = (RunRow & { readonly kind: 'run' }) | (SessionRow & { readonly kind: 'session' });

type Row = {
  readonly element: HTMLElement;
  readonly update: (kept: SidebarLists, isHere: boolean, nowMs: number) => void;
};

export class Sidebar {
  readonly element: HTMLElement;
  readonly #live = h('ul', { class: 'kept' });
  readonly #rest = h('ul', { class: 'kept' });
  readonly #liveTitle = h('h2', {}, 'At work');
  readonly #restTitle = h('h2', {}, 'Earlier');
  readonly #empty = h('div', { class: 'empty', is: { hidden: true } });
  readonly #rows = new Map<string, Row>();

  constructor() {
    this.#empty.append(
      h('p', {}, 'Nothing here yet.'),
      h('p', { class: 'quiet' }, 'Start a run or a session, or use drover run in a terminal: it will show up here.'),
    );
    const links = [
      h('a', { class: 'press primary', is: { href: '#/new/run' } }, 'New run'),
      h('a', { class: 'press', is: { href: '#/new/session' } }, 'New session'),
    ];
    const lists = [this.#liveTitle, this.#live, this.#restTitle, this.#rest, this.#empty];
    this.element = h(
      'nav',
      { class: 'sidebar', is: { 'aria-label': 'Runs and sessions' } },
      h('div', { class: 'new' }, ...links),
      h('div', { class: 'scroll' }, ...lists),
    );
  }

  /** `known` is undefined until it is known. */
  update(known: readonly SidebarLists[] | undefined, here: string, nowMs: number): void {
    const all = known ?? [];
    const sorted = all.toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt)).slice(0, ROWS_MAX);
    const rowOf = (kept: SidebarLists) => {
      const key = `#/${kept.kind}s/${kept.id}`;
      const row = this.#rows.get(key) ?? newRow(key);
      this.#rows.set(key, row);
      row.update(kept, here === key, nowMs);
      return row.element;
    };
    const live = sorted.filter((kept) => kept.live).map(rowOf);
    const rest = sorted.filter((kept) => !kept.live).map(rowOf);
    fill(this.#live, live);
    fill(this.#rest, rest);
    show(this.#liveTitle, live.length > 0);
    show(this.#restTitle, rest.length > 0);
    show(this.#empty, known?.length === 0);
  }
}

function newRow(href: string): Row {
  const dot = stateMark('idle');
  const title = h('span', { class: 'kept-title' });
  const about = h('span', { class: 'kept-about numbers' });
  const link = h('a', { class: 'kept-link', is: { href } }, dot, h('span', {}, title, about));
  return {
    element: h('li', {}, link),
    update: (kept, isHere, nowMs) => {
      mark(dot, 'data-state', stateOf(kept));
      mark(link, 'aria-current', isHere ? 'page' : false);
      say(title, kept.title === '' ? 'Untitled' : kept.title);
      say(about, aboutOf(kept, nowMs));
      mark(link, 'title', kept.cwd);
    },
  };
}

function stateOf({ live, state, waiting }: SidebarLists): string {
  if (waiting > 0) return 'asking';
  if (live) return state === 'suspended' ? 'asking' : 'running';
  const states: Readonly<Record<string, string>> = {
    done: 'landed',
    incomplete: 'throttled',
    open: 'throttled',
    suspended: 'asking',
    error: 'failed',
    damaged: 'failed',
    cancelled: 'cancelled',
  };
  return states[state] ?? 'idle';
}

function folderOf(cwd: string): string | undefined {
  return cwd === '' ? undefined : cwd.split('/').at(-1);
}

function aboutOf(kept: SidebarLists, nowMs: number): string {
  const tasks = kept.kind === 'run' && kept.tasks > 0 ? `${kept.landed}/${kept.tasks} tasks` : kept.kind;
  const state = kept.live
    ? undefined
    : kept.state === 'open'
      ? 'stopped'
      : kept.state === 'done'
        ? undefined
        : kept.state;
  const asks = kept.waiting > 0 ? 'asks you' : undefined;
  const cost = kept.cost === undefined ? undefined : dollars(kept.cost);
  return [asks, folderOf(kept.cwd), tasks, state, cost, timeAgo(kept.updatedAt, nowMs)]
    .filter((part) => part !== undefined)
    .join(' · ');
}
