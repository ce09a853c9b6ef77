// The runs and sessions there are: what is at work first, then the newest.

import type { RunRow, SessionRow } from '@drover/client/wire';
import { pageDollars, pageTimeAgo } from '../../words.ts';
import { fillDomElement, h, markDomElement, setDomText, showDomElement, domStateMark } from '../dom.ts';

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
      const row = this.#rows.get(key) ?? newSidebarRow(key);
      this.#rows.set(key, row);
      row.update(kept, here === key, nowMs);
      return row.element;
    };
    const live = sorted.filter((kept) => kept.live).map(rowOf);
    const rest = sorted.filter((kept) => !kept.live).map(rowOf);
    fillDomElement(this.#live, live);
    fillDomElement(this.#rest, rest);
    showDomElement(this.#liveTitle, live.length > 0);
    showDomElement(this.#restTitle, rest.length > 0);
    showDomElement(this.#empty, known?.length === 0);
  }
}

function newSidebarRow(href: string): Row {
  const dot = domStateMark('idle');
  const title = h('span', { class: 'kept-title' });
  const about = h('span', { class: 'kept-about numbers' });
  const link = h('a', { class: 'kept-link', is: { href } }, dot, h('span', {}, title, about));
  return {
    element: h('li', {}, link),
    update: (kept, isHere, nowMs) => {
      markDomElement(dot, 'data-state', sidebarState(kept));
      markDomElement(link, 'aria-current', isHere ? 'page' : false);
      setDomText(title, kept.title === '' ? 'Untitled' : kept.title);
      setDomText(about, sidebarAbout(kept, nowMs));
      markDomElement(link, 'title', kept.cwd);
    },
  };
}

function sidebarState({ live, state, waiting }: SidebarLists): string {
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

function sidebarAbout(kept: SidebarLists, nowMs: number): string {
  const tasks = kept.kind === 'run' && kept.tasks > 0 ? `${kept.landed}/${kept.tasks} tasks` : kept.kind;
  const state = kept.live
    ? undefined
    : kept.state === 'open'
      ? 'stopped'
      : kept.state === 'done'
        ? undefined
        : kept.state;
  const asks = kept.waiting > 0 ? 'asks you' : undefined;
  const cost = kept.cost === undefined ? undefined : pageDollars(kept.cost);
  return [asks, folderOf(kept.cwd), tasks, state, cost, pageTimeAgo(kept.updatedAt, nowMs)]
    .filter((part) => part !== undefined)
    .join(' · ');
}
