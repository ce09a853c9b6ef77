// Makes git's diff safe for a terminal, and colours it.
//
// The colours are drover's own: git's could not be told from control sequences in a file.

import type { Style } from '../views/text/style.ts';
import { cleanText } from '../views/text/terminal-text.ts';

/** `raw` has one character per byte. */
export function cleanPatch(raw: string): string {
  return cleanText(Buffer.from(raw, 'latin1').toString('utf8'));
}

/** Colours a patch. Counts the lines of each hunk, since a removed `-- x` looks like a header. */
export function colourPatch(patch: string, style: Style): string {
  let [before, after] = [0, 0]; // remaining lines of the hunk
  return patch
    .split('\n')
    .map((line) => {
      const sign = line[0];
      if (before > 0 || after > 0) {
        if (sign !== '+' && sign !== '\\') before -= 1;
        if (sign !== '-' && sign !== '\\') after -= 1;
        return sign === '+' ? style('green', line) : sign === '-' ? style('red', line) : line;
      }
      const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
      if (hunk === null) return line === '' || sign === '\\' ? line : style('bold', line);
      [before, after] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      return style('cyan', hunk[0]) + line.slice(hunk[0].length);
    })
    .join('\n');
}

/** Colours the bars of `--stat`. */
export function colourStat(stat: string, style: Style): string {
  return stat.replaceAll(/(?<=^ .* \| +\d+ )\++|(?<=^ .* \| +\d+ \+*)-+(?=$)/gm, (bar) =>
    style(bar.startsWith('+') ? 'green' : 'red', bar),
  );
}
