// The changes of a task: its files, and the numbered lines of each.

import { parsePagePatch, type PatchFile, type PatchLine } from '../../../patch.ts';
import { h } from '../../dom.ts';
import { copyButton } from '../copy.ts';

const LINES_MAX = 1_500; // of a file that are laid out at once
const OPEN_MAX = 12; // files that are unfolded

export function runPartPatchList(patch: string): HTMLElement {
  const { files, leftOut } = parsePagePatch(patch);
  if (files.length === 0) return h('p', { class: 'empty' }, 'Nothing was changed.');
  const added = files.reduce((all, file) => all + file.added, 0);
  const removed = files.reduce((all, file) => all + file.removed, 0);
  const count = files.length === 1 ? '1 file' : `${files.length} files`;
  return h(
    'div',
    { class: 'patch' },
    h(
      'div',
      { class: 'patch-sum' },
      h('span', {}, count, runPartPatchTally(added, removed)),
      copyButton('the diff', () => patch),
    ),
    ...files.map((file, at) => runPartPatchFile(file, at < OPEN_MAX)),
    leftOut > 0 ? h('p', { class: 'quiet' }, `${leftOut} more lines are left out.`) : undefined,
  );
}

function runPartPatchFile(file: PatchFile, isOpen: boolean): HTMLElement {
  const { path, what, added, removed, lines } = file;
  const word = what === 'changed' ? undefined : h('span', { class: 'badge' }, what);
  const name = h('code', {}, path === '' ? 'About this change' : path);
  const summary = h('summary', {}, name, word, runPartPatchTally(added, removed));
  const table = h('table', { class: 'lines' }, h('tbody', {}, ...lines.slice(0, LINES_MAX).map(runPartPatchLine)));
  const rest = lines.length - LINES_MAX;
  const more = rest > 0 ? h('p', { class: 'quiet' }, `${rest} more lines of this file are left out.`) : undefined;
  return h('details', { class: 'file', is: { open: isOpen } }, summary, h('div', { class: 'scroll' }, table), more);
}

function runPartPatchLine({ kind, text, before, after }: PatchLine): HTMLElement {
  const sign = { added: '+', removed: '−', same: '', place: '', note: '' }[kind];
  return h(
    'tr',
    { class: kind },
    h('td', { class: 'number' }, before === undefined ? '' : String(before)),
    h('td', { class: 'number' }, after === undefined ? '' : String(after)),
    h('td', { class: 'sign' }, sign),
    h('td', { class: 'text' }, text),
  );
}

function runPartPatchTally(added: number, removed: number): HTMLElement {
  return h(
    'span',
    { class: 'tally' },
    h('span', { class: 'added', is: { 'aria-label': `${added} lines added` } }, `+${added}`),
    h('span', { class: 'removed', is: { 'aria-label': `${removed} lines removed` } }, `−${removed}`),
  );
}
