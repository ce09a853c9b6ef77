// The list of removable and kept things for the user, grouped by reason, each with its size.

import { countText } from '../views/text/figures.ts';
import { textCell, cutText, widthOfText } from '../views/text/terminal-text.ts';
import { wrapText } from '../views/text/word-wrap.ts';
import type { Paper } from '../history/facts.ts';

const LISTED_MAX = 8; // of one group

export type Removable = { readonly what: string; readonly why: string; readonly bytes?: number };

/** `home`: omitted from paths below it. */
export function removalLines(items: readonly Removable[], home: string, paper: Paper): string {
  const groups = Map.groupBy(items, ({ why }) => why);
  return [...groups].map(([why, group]) => removalGroupLines({ why, group }, home, paper)).join('');
}

type Group = { readonly why: string; readonly group: readonly Removable[] };

function removalGroupLines({ why, group }: Group, home: string, { columns, style }: Paper): string {
  const bytes = sumRemovedBytes(group);
  const figures = [countText(group.length), ...(bytes === 0 ? [] : [formatBytes(bytes)])].join(', ');
  const head = wrapText(`${textCell(shortenHomePath(why, home), Infinity)}: ${figures}`, columns - 2).replaceAll(
    '\n',
    '\n  ',
  );
  const lines = group
    .slice(0, LISTED_MAX)
    .map(({ what }) => `    ${style('dim', shortenRemovedPath(shortenHomePath(what, home), columns - 4))}\n`);
  const left = group.length - LISTED_MAX;
  const more = left > 0 ? `    ${style('dim', cutText(`… and ${countText(left)} more`, columns - 4))}\n` : '';
  return `  ${head}\n${lines.join('')}${more}`;
}

/**
 * Shortens ids to a form that commands accept, and marks a branch in drover's store as a copy, since the user's branch
 * is another.
 */
function shortenHomePath(text: string, home: string): string {
  return text
    .replaceAll(`${home}/`, '')
    .replace(/^(.*) in workspaces\/[^/]+\/store\.git$/, "drover's copy of $1")
    .replaceAll(/(run|ses)_([0-9a-f]{8})[0-9a-f]{24}/g, '$1_$2…');
}

/** Keeps both ends, because paths differ at their ends. */
function shortenRemovedPath(text: string, columns: number): string {
  const line = textCell(text, Number.POSITIVE_INFINITY);
  if (widthOfText(line) <= columns) return line;
  const half = Math.floor((columns - 1) / 2);
  return `${textCell(line, half).replace(/…$/, '')}…${line.slice(-half)}`;
}

function sumRemovedBytes(items: readonly Removable[]): number {
  return items.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** 950 B, 12.4 kB, 1.2 GB. */
export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1000 ** power;
  return `${power === 0 ? amount : amount.toFixed(1)} ${UNITS[power]}`;
}

export function countRemovedThings(items: readonly Removable[]): string {
  const bytes = sumRemovedBytes(items);
  const size = bytes === 0 ? '' : `, ${formatBytes(bytes)}`;
  return `${countText(items.length)} ${items.length === 1 ? 'thing' : 'things'}${size}`;
}
