// A unified diff for a user: each line with its number, added lines green and removed ones red.

import type { Style } from '../../views/text/style.ts';
import { cleanText, cutText } from '../../views/text/terminal-text.ts';

const NUMBER_COLUMNS = 5;

/** Whole lines; empty for an empty diff. */
export function formatNumberedDiff(
  diff: string,
  { style, columns }: { readonly style: Style; readonly columns: number },
): string {
  let before = 0;
  let after = 0;
  const rows: string[] = [];
  for (const line of diff.split('\n')) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
    if (hunk !== null) {
      if (rows.length > 0) rows.push(style('dim', `${'…'.padStart(NUMBER_COLUMNS + 3)}`));
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      continue;
    }
    if (!/^[-+ ]/.test(line) || /^(---|\+\+\+) /.test(line)) continue;
    const number = line.startsWith('-') ? before : after;
    if (!line.startsWith('+')) before += 1;
    if (!line.startsWith('-')) after += 1;
    const format = line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : 'dim';
    const text = cleanText(line.replaceAll('\t', '  ')).replaceAll('\n', ' ');
    rows.push(style(format, cutText(`${String(number).padStart(NUMBER_COLUMNS + 2)} ${text}`, columns - 1)));
  }
  return rows.map((row) => `${row}\n`).join('');
}
