// The footer of a chat: status, queued messages, the draft or a question, a menu, and the mode line.

import { countText } from '../../views/text/figures.ts';
import type { Style } from '../../views/text/style.ts';
import { textCell, cleanText, cutText, textOnOneLine } from '../../views/text/terminal-text.ts';
import type { Menu } from '../complete/menu.ts';
import type { Draft } from '../../terminal/draft.ts';
import type { Queued } from '../input/queue.ts';
import type { Chooser } from './chooser.ts';

import { draftRows, type Footer, visibleDraftRows } from '../../terminal/draft-rows.ts';
import type { Screen } from './screen.ts';

const QUEUED_ROWS_MAX = 3;
const MENU_ROWS_MAX = 8;
const MENU_ROWS_MIN = 2;

export type FooterParts = {
  readonly status: string;
  readonly queued: readonly Queued[];
  readonly chooser?: Chooser;
  readonly draft: Draft;
  readonly prompt: string;
  readonly isQuestion: boolean;
  readonly menu: (Menu & { readonly selected: number }) | undefined;
  readonly note: string;
  readonly style: Style;
  readonly isAscii: boolean;
};

export function chatFooter(parts: FooterParts, { columns, rows }: Pick<Screen, 'columns' | 'rows'>): Footer {
  const { style, note, prompt, draft, chooser } = parts;
  const dim = (text: string): string => style('dim', cutText(cleanText(text), columns - 1));
  if (chooser !== undefined) return chooser.footer({ columns, rows }, style);
  const above = [...(parts.status === '' ? [] : [dim(parts.status)]), ...queuedMessageRows(parts.queued, dim)];
  const last = note === '' || parts.isQuestion ? [] : [dim(note)];
  const room = Math.max(rows - 1 - above.length - last.length, 1);
  const whole = draftRows(draft, prompt, columns);
  const menuRoom = Math.min(MENU_ROWS_MAX, Math.max(room - whole.rows.length, MENU_ROWS_MIN));
  const menu = parts.menu === undefined ? [] : completionMenuRows(parts, columns, menuRoom);
  const box = visibleDraftRows(whole, Math.max(room - menu.length, 1));
  const painted = box.rows.map((row, at) =>
    whole.rows[0] === row && at === 0 ? paintChatPrompt(row, prompt, style) : row,
  );
  return {
    rows: [...above, ...painted, ...menu, ...last],
    row: above.length + box.row,
    column: box.column,
  };
}

/** A draft as text that stays. */
export function chatPromptRows(
  draft: Draft,
  { prompt, style, columns }: { readonly prompt: string; readonly style: Style; readonly columns: number },
): readonly string[] {
  return draftRows(draft, prompt, columns).rows.map((row, at) =>
    at === 0 ? paintChatPrompt(row, prompt, style) : row,
  );
}

function paintChatPrompt(row: string, prompt: string, style: Style): string {
  return style(['bold', 'cyan'], prompt) + row.slice(prompt.length);
}

const WHEN = { step: 'at the next step', turn: 'after the turn' } as const;

function queuedMessageRows(queued: readonly Queued[], dim: (text: string) => string): readonly string[] {
  const shown = queued.slice(-QUEUED_ROWS_MAX);
  const more = queued.length - shown.length;
  return [
    ...(more > 0 ? [dim(`  … ${countText(more)} more queued`)] : []),
    ...shown.map(({ text, when }) =>
      dim(`  queued ${WHEN[when]}: ${textOnOneLine(text, Infinity)} (Up takes it back)`),
    ),
  ];
}

function completionMenuRows({ menu, style, isAscii }: FooterParts, columns: number, room: number): readonly string[] {
  const { items = [], selected = 0 } = menu ?? {};
  const from = Math.max(0, Math.min(selected - room + 1, items.length - room));
  const shown = items.slice(from, from + room);
  const widest = Math.min(Math.max(...shown.map(({ text }) => text.length)), Math.floor(columns / 2));
  return shown.map(({ text, about }, at) => {
    const isSelected = from + at === selected;
    const mark = isSelected ? (isAscii ? '> ' : '▸ ') : '  ';
    const name = about === '' ? textCell(text, columns - 3) : textCell(text, widest).padEnd(widest);
    const line = cutText(`${mark}${name}${about === '' ? '' : `  ${about}`}`, columns - 1);
    return isSelected ? style('cyan', line) : style('dim', line);
  });
}
