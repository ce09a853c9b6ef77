// Finds a passage that a model quotes from a file. Pure functions.
//
// Models often lose line ends, trailing blanks and indentation. The tolerant search ignores white space, matches
// whole lines, and gives the new text the indentation of the file.

/** A search stops at this number of matches, so it means this number or more. */
export const MATCHES_MAX = 10_000;

/** `replacement` replaces text.slice(from, to). */
export type Match = { readonly from: number; readonly to: number; readonly replacement: string };

/** Finds exact matches, ignoring the kind of line end. */
export function findExactPassage(text: string, old: string, replacement: string): readonly Match[] {
  const file = passageWithoutReturns(text);
  const wanted = old.replaceAll('\r\n', '\n');
  const matches: Match[] = [];
  for (let at = file.text.indexOf(wanted); at !== -1; at = file.text.indexOf(wanted, at + wanted.length)) {
    const [from, to] = [file.originalAt(at), file.originalAt(at + wanted.length)];
    matches.push({ from, to, replacement: passageWithLineEnds(replacement, passageLineEndAt(text, from)) });
    if (matches.length === MATCHES_MAX) break;
  }
  return matches;
}

/** Finds matches of whole lines, ignoring white space. */
export function findTolerantPassage(text: string, old: string, replacement: string): readonly Match[] {
  const endsLine = old.endsWith('\n');
  const wanted = (endsLine ? old.replace(/\r?\n$/, '') : old).split('\n');
  const wantedKeys = wanted.map(passageLineKey);
  if (wantedKeys.every((key) => key === '')) return [];

  const lines = passageLines(text);
  const keys = lines.map((line) => passageLineKey(line.text));
  const matches: Match[] = [];
  for (let at = 0; at + wanted.length <= lines.length && matches.length < MATCHES_MAX;) {
    if (!wantedKeys.every((key, index) => key === keys[at + index])) {
      at++;
      continue;
    }
    const found = lines.slice(at, at + wanted.length);
    const [first, last] = [found[0], found.at(-1)];
    if (first === undefined || last === undefined) break;
    const indented = reindentPassage(
      replacement,
      wanted,
      found.map((line) => line.text),
    );
    matches.push({
      from: first.from,
      to: endsLine ? last.next : last.to,
      replacement: passageWithLineEnds(indented, passageLineEndAt(text, first.from)),
    });
    at += wanted.length;
  }
  return matches;
}

export function passageLineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

/** Returns a hint for a passage that was not found: the line that matches its first line, if there is one. */
export function nearestPassageLine(text: string, old: string): string {
  const key = old
    .split('\n')
    .map(passageLineKey)
    .find((line) => line !== '');
  const at = key === undefined ? -1 : passageLines(text).findIndex((line) => passageLineKey(line.text) === key);
  return at === -1 ? ': read it again' : `: its first line stands at line ${at + 1}, but what follows differs`;
}

// Replaces CR LF by LF; `originalAt` maps an offset back to the original text. A CR belongs to its LF, so a
// passage that ends before a line end leaves both unchanged.
function passageWithoutReturns(text: string) {
  if (!text.includes('\r\n')) return { text, originalAt: (offset: number) => offset };
  const returns: number[] = []; // offsets, in the shorter text, of the LFs that had a CR
  for (let at = text.indexOf('\r\n'); at !== -1; at = text.indexOf('\r\n', at + 2)) returns.push(at - returns.length);
  const originalAt = (offset: number) => {
    let [low, high] = [0, returns.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((returns[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return offset + low;
  };
  return { text: text.replaceAll('\r\n', '\n'), originalAt };
}

// Returns the line end of the line at an offset, or for the last line that of the line before.
function passageLineEndAt(text: string, offset: number): '\n' | '\r\n' {
  const after = text.indexOf('\n', offset);
  const end = after === -1 ? text.lastIndexOf('\n') : after;
  return end > 0 && text[end - 1] === '\r' ? '\r\n' : '\n';
}

function passageWithLineEnds(text: string, lineEnd: '\n' | '\r\n'): string {
  const plain = text.replaceAll('\r\n', '\n');
  return lineEnd === '\n' ? plain : plain.replaceAll('\n', '\r\n');
}

/** A line without its line end, at text.slice(from, to); the next line begins at `next`. */
type TextLine = { readonly text: string; readonly from: number; readonly to: number; readonly next: number };

function passageLines(text: string): readonly TextLine[] {
  const lines: TextLine[] = [];
  for (let from = 0; from <= text.length;) {
    const found = text.indexOf('\n', from);
    const next = found === -1 ? text.length : found + 1;
    const end = found === -1 ? text.length : found;
    const to = end > from && text[end - 1] === '\r' ? end - 1 : end;
    lines.push({ text: text.slice(from, to), from, to, next });
    if (found === -1) break;
    from = next;
  }
  return lines;
}

function passageLineKey(line: string): string {
  return line.trim().replace(/\s+/g, ' ');
}

// Replaces the quoted indentation of each new line by that of the file. The longest matching prefix is replaced,
// so deeper lines keep their additional indentation.
function reindentPassage(replacement: string, quoted: readonly string[], found: readonly string[]): string {
  const known = new Map<string, string>();
  quoted.forEach((line, index) => {
    if (line.trim() !== '' && !known.has(passageIndent(line)))
      known.set(passageIndent(line), passageIndent(found[index] ?? ''));
  });
  const longestFirst = [...known].sort(([a], [b]) => b.length - a.length);
  return replacement
    .split('\n')
    .map((line) => {
      if (line.trim() === '') return line;
      const [given, real] = longestFirst.find(([indent]) => line.startsWith(indent)) ?? ['', ''];
      return real + line.slice(given.length);
    })
    .join('\n');
}

function passageIndent(line: string): string {
  return /^[ \t]*/.exec(line)?.[0] ?? '';
}
