// A list to choose from, in the place of the draft: typing narrows it, arrows move, Enter takes, Esc leaves.

import type { Style } from '../../views/text/style.ts';
import { textCell, cleanText, cutText } from '../../views/text/terminal-text.ts';
import { searchFuzzy } from '../complete/fuzzy.ts';
import { type Draft, editDraft, EMPTY } from '../../terminal/draft.ts';
import { isCtrlKey, type Key } from '../../terminal/keyboard.ts';
import type { Footer } from '../../terminal/draft-rows.ts';

const ROWS_MAX = 12;

/** `isCurrent`: selected at first. */
export type Choice = { readonly label: string; readonly about: string; readonly isCurrent?: boolean };

export class Chooser {
  readonly settle: (chosen: number | undefined) => void;
  readonly #title: string;
  readonly #choices: readonly Choice[];
  #query: Draft = EMPTY;
  #selected: number;

  constructor(title: string, choices: readonly Choice[], settle: (chosen: number | undefined) => void) {
    this.#title = title;
    this.#choices = choices;
    this.settle = settle;
    this.#selected = Math.max(
      choices.findIndex(({ isCurrent }) => isCurrent),
      0,
    );
  }

  press(key: Key): void {
    const { length } = this.#found;
    if (key.name === 'escape' || isCtrlKey(key, 'c') || isCtrlKey(key, 'd')) return this.settle(undefined);
    if (key.name === 'return') {
      const chosen = this.#found[this.#selected];
      if (chosen !== undefined) this.settle(this.#choices.indexOf(chosen));
      return;
    }
    if (key.name === 'up' || key.name === 'down') {
      if (length > 0) this.#selected = (this.#selected + (key.name === 'down' ? 1 : length - 1)) % length;
      return;
    }
    const next = editDraft(this.#query, { ...key, text: key.text.replaceAll('\n', ' ') });
    if (next === undefined) return;
    if (next.text !== this.#query.text) this.#selected = 0;
    this.#query = next;
  }

  footer({ columns, rows }: { readonly columns: number; readonly rows: number }, style: Style): Footer {
    const found = this.#found;
    const room = Math.max(Math.min(ROWS_MAX, rows - 4), 1);
    const from = Math.max(0, Math.min(this.#selected - room + 1, found.length - room));
    const shown = found.slice(from, from + room);
    const widest = Math.min(Math.max(0, ...shown.map(({ label }) => label.length)), Math.floor(columns / 2));
    const lines = shown.map(({ label, about }, at) => {
      const isSelected = from + at === this.#selected;
      const line = cutText(
        `${isSelected ? '▸ ' : '  '}${textCell(label, widest).padEnd(widest)}  ${cleanText(about)}`,
        columns - 1,
      );
      return isSelected ? style('cyan', line) : line;
    });
    const prompt = cutText(`${this.#title}: ${cleanText(this.#query.text)}`, columns - 1);
    const keys = found.length === 0 ? 'nothing matches · Esc leaves' : 'arrows move · Enter takes it · Esc leaves';
    return {
      rows: [style('bold', prompt), ...lines, style('dim', cutText(keys, columns - 1))],
      row: 0,
      column: Math.min(prompt.length, columns - 1),
    };
  }

  get #found(): readonly Choice[] {
    return searchFuzzy(this.#query.text, this.#choices, ({ label, about }) => `${label} ${about}`);
  }
}
