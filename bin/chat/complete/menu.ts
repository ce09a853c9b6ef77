// The menu below a draft: slash commands while the draft is the beginning of one, files behind an @.

import type { Draft } from '../../terminal/draft.ts';
import { searchFuzzy } from './fuzzy.ts';

/** `text` replaces what was typed; `about` stands beside it. `sends`: Enter sends the draft at once. */
export type MenuItem = { readonly text: string; readonly about: string; readonly sends: boolean };

export type MenuSources = {
  readonly slashes: readonly MenuItem[];
  /** All paths of the folder; the list may still be empty while it is read. */
  readonly paths: () => readonly string[];
};

/** The items that fit, and the part of the draft that one of them replaces. */
export type Menu = { readonly items: readonly MenuItem[]; readonly from: number; readonly to: number };

export function completionMenu({ text, at }: Draft, { slashes, paths }: MenuSources): Menu | undefined {
  if (/^\/[a-z]*$/i.test(text) && at === text.length) {
    const items = searchFuzzy(text.slice(1), slashes, (item) => item.text.slice(1));
    return items.length === 0 ? undefined : { items, from: 0, to: text.length };
  }
  const mention = /(?:^|\s)@([^\s@]*)$/.exec(text.slice(0, at));
  if (mention === null) return undefined;
  const query = mention[1] ?? '';
  const items = searchFuzzy(query, paths(), (path) => path).map((path) => ({
    text: `@${path}`,
    about: '',
    sends: false,
  }));
  return items.length === 0 ? undefined : { items, from: at - query.length - 1, to: at };
}

/** The draft with the item in the place of what was typed. */
export function acceptMenuItem({ text }: Draft, { from, to }: Menu, item: MenuItem): Draft {
  const rest = text.slice(to);
  const piece = item.sends || rest.startsWith(' ') ? item.text : `${item.text} `;
  return { text: text.slice(0, from) + piece + rest, at: from + piece.length };
}
