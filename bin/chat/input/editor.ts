// The editor of a chat: a draft with history, history search (Ctrl-R), folded pastes and a menu. Knows no screen.

import { acceptMenuItem, type Menu, completionMenu, type MenuItem, type MenuSources } from '../complete/menu.ts';
import {
  continueDraftLine,
  type Draft,
  newDraft,
  editDraft,
  EMPTY,
  insertIntoDraft,
  draftLineAway,
} from '../../terminal/draft.ts';
import { isCtrlKey, isNewlineKey, type Key } from '../../terminal/keyboard.ts';
import type { Pastes } from './pastes.ts';

/** A search in the history: what was typed, and the message that matches. */
type Search = { readonly query: string; readonly skip: number };

export type EditorOptions = {
  /** Earlier messages of the user, newest last. */
  readonly history: () => readonly string[];
  readonly menu: MenuSources;
  readonly pastes: Pastes;
};

export class Editor {
  readonly #options: EditorOptions;
  #draft: Draft = EMPTY;
  #lines: string[] = ['']; // the history and the draft, as edited
  #shown = 0;
  #selected = 0;
  #isMenuClosed = false;
  #search: Search | undefined;

  constructor(options: EditorOptions) {
    this.#options = options;
  }

  get draft(): Draft {
    return this.#draft;
  }

  get isEmpty(): boolean {
    return this.#draft.text === '';
  }

  /** Replaces the draft, and begins at the newest message of the history again. */
  set(draft: Draft): void {
    this.#lines = [...this.#options.history(), ''];
    this.#shown = this.#lines.length - 1;
    this.#search = undefined;
    this.#change(draft);
  }

  get menu(): (Menu & { readonly selected: number }) | undefined {
    if (this.#isMenuClosed || this.#search !== undefined) return undefined;
    const menu = completionMenu(this.#draft, this.#options.menu);
    return menu && { ...menu, selected: Math.min(this.#selected, menu.items.length - 1) };
  }

  /** The line below the draft during a history search. */
  get searchNote(): string | undefined {
    if (this.#search === undefined) return undefined;
    const { query } = this.#search;
    const none = query !== '' && this.#found === undefined ? ' (nothing found)' : '';
    return `history: ${query}${none} · Enter takes it · Ctrl-R older · Esc back`;
  }

  /** Edits the draft. Returns the message if the key sends it, and whether the key meant anything. */
  press(key: Key): 'edited' | 'ignored' | { readonly send: string } {
    if (this.#search !== undefined) return this.#pressInSearch(key, this.#search);
    if (isCtrlKey(key, 'r')) {
      this.#search = { query: '', skip: 0 };
      return 'edited';
    }
    const inMenu = this.#pressInMenu(key);
    if (inMenu !== undefined) return inMenu;
    if (isNewlineKey(key)) return this.#change(insertIntoDraft(this.#draft, '\n'));
    if (key.name === 'return') return this.#enter();
    if (key.name === 'up' || key.name === 'down') return this.#move(key.name);
    if (key.name === 'paste') return this.#change(insertIntoDraft(this.#draft, this.#options.pastes.fold(key.text)));
    const paste =
      key.name === 'backspace' ? this.#options.pastes.endingAt(this.#draft.text, this.#draft.at) : undefined;
    if (paste !== undefined) {
      const { text, at } = this.#draft;
      return this.#change({ text: text.slice(0, at - paste.length) + text.slice(at), at: at - paste.length });
    }
    const next = editDraft(this.#draft, key);
    return next === undefined ? 'ignored' : this.#change(next);
  }

  #pressInMenu(key: Key): ReturnType<Editor['press']> | undefined {
    const { menu } = this;
    if (menu === undefined) return undefined;
    const item = menu.items[menu.selected];
    if (key.name === 'escape') {
      this.#isMenuClosed = true;
      return 'edited';
    }
    if (key.name === 'up' || key.name === 'down') {
      const count = menu.items.length;
      this.#selected = (menu.selected + (key.name === 'down' ? 1 : count - 1)) % count;
      return 'edited';
    }
    if (item === undefined || key.meta || (key.name !== 'tab' && key.name !== 'return')) return undefined;
    return this.#accept(key, menu, item);
  }

  #accept(key: Key, menu: Menu, item: MenuItem): ReturnType<Editor['press']> {
    const isTyped = this.#draft.text.slice(menu.from, menu.to) === item.text;
    if (key.name === 'return' && isTyped)
      return menu.from === 0 && item.text.startsWith('/') ? this.#enter() : this.#close();
    const draft = acceptMenuItem(this.#draft, menu, { ...item, sends: item.sends && key.name === 'return' });
    this.#change(draft);
    return key.name === 'return' && item.sends ? this.#enter() : 'edited';
  }

  #close(): 'edited' {
    this.#isMenuClosed = true;
    return 'edited';
  }

  #enter(): ReturnType<Editor['press']> {
    const longer = continueDraftLine(this.#draft);
    if (longer !== undefined) return this.#change(longer);
    const { text } = this.#draft;
    return text.trim() === '' ? 'edited' : { send: text };
  }

  #move(direction: 'up' | 'down'): 'edited' {
    const moved = draftLineAway(this.#draft, direction);
    if (moved !== undefined) return this.#change(moved);
    const next = this.#shown + (direction === 'up' ? -1 : 1);
    const line = this.#lines[next];
    if (line === undefined) return 'edited';
    // Keep the edited draft, so the user finds it when moving back.
    this.#lines[this.#shown] = this.#draft.text;
    this.#shown = next;
    this.#change(newDraft(line));
    return this.#close();
  }

  #pressInSearch(key: Key, { query, skip }: Search): 'edited' {
    const found = this.#found;
    if (key.name === 'escape' || isCtrlKey(key, 'c')) this.#search = undefined;
    else if (isCtrlKey(key, 'r'))
      this.#search = { query, skip: this.#matches(query, skip + 1) === undefined ? skip : skip + 1 };
    else if (key.name === 'return') {
      this.#search = undefined;
      if (found !== undefined) this.#change(newDraft(found));
    } else {
      const next = editDraft(newDraft(query), key)?.text.replaceAll('\n', ' ') ?? query;
      this.#search = { query: next, skip: 0 };
    }
    return 'edited';
  }

  /** The message that the search has found. */
  get found(): Draft | undefined {
    const text = this.#found;
    return text === undefined ? undefined : newDraft(text);
  }

  get #found(): string | undefined {
    return this.#search && this.#matches(this.#search.query, this.#search.skip);
  }

  #matches(query: string, skip: number): string | undefined {
    if (query === '') return undefined;
    const lower = query.toLowerCase();
    return [...new Set(this.#options.history().toReversed())].filter((text) => text.toLowerCase().includes(lower))[
      skip
    ];
  }

  #change(draft: Draft): 'edited' {
    if (draft.text !== this.#draft.text) {
      this.#isMenuClosed = false;
      this.#selected = 0;
    }
    this.#draft = draft;
    return 'edited';
  }
}
