// Parses a patch of git into files and numbered lines.
//
// Text that is not a patch becomes plain lines of a file without a name, so that nothing is lost.

const LINES_MAX = 20_000;

export type PatchLine = {
  readonly kind: 'same' | 'added' | 'removed' | 'place' | 'note';
  readonly text: string;
  readonly before: number | undefined; // its number in the old file
  readonly after: number | undefined;
};

export type PatchFile = {
  readonly path: string;
  readonly what: 'changed' | 'new' | 'deleted' | 'renamed' | 'binary';
  readonly added: number;
  readonly removed: number;
  readonly lines: readonly PatchLine[];
};

export type Patch = { readonly files: readonly PatchFile[]; readonly leftOut: number /* lines */ };

type Growing = { -readonly [Key in keyof PatchFile]: PatchFile[Key] } & { lines: PatchLine[] };

export function parsePagePatch(text: string): Patch {
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  const reading = new Reading();
  for (const line of all.slice(0, LINES_MAX)) reading.line(line);
  return { files: reading.files, leftOut: Math.max(0, all.length - LINES_MAX) };
}

class Reading {
  readonly files: Growing[] = [];
  #isInHunk = false;
  #before = 0;
  #after = 0;
  #leftBefore = 0; // lines of the hunk that are still to come
  #leftAfter = 0;

  line(line: string): void {
    // Inside a hunk everything counts as content, whatever it looks like.
    if (this.#isInHunk && this.#leftBefore + this.#leftAfter > 0) return this.#content(line);
    if (line.startsWith('\\ ')) return this.#add({ kind: 'note', text: line.slice(2) });
    if (line.startsWith('diff --git ')) return this.#begin(pathOfPagePatch(line));
    const place = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/.exec(line);
    if (place !== null) return this.#place(place);
    this.#isInHunk = false;
    const file = this.files.at(-1);
    if (file === undefined || file.path === '') return this.#plain(line);
    if (line.startsWith('new file')) file.what = 'new';
    else if (line.startsWith('deleted file')) file.what = 'deleted';
    else if (line.startsWith('rename to ')) [file.what, file.path] = ['renamed', nameInPagePatch(line.slice(10))];
    else if (line.startsWith('Binary files') || line.startsWith('GIT binary patch')) file.what = 'binary';
    else if (/^\+\+\+ "?b\//.test(line)) file.path = nameInPagePatch(line.slice(4).replace(/\t$/, ''));
  }

  #begin(path: string): void {
    this.#isInHunk = false;
    this.files.push({ path, what: 'changed', added: 0, removed: 0, lines: [] });
  }

  #place([, before = '0', beforeCount = '1', after = '0', afterCount = '1', around = '']: readonly string[]): void {
    this.#isInHunk = true;
    this.#before = Number(before);
    this.#after = Number(after);
    this.#leftBefore = Number(beforeCount);
    this.#leftAfter = Number(afterCount);
    this.#add({ kind: 'place', text: `line ${after}${around === '' ? '' : ` ${around.trim()}`}` });
  }

  #content(line: string): void {
    const [sign = ' '] = line;
    const text = line.slice(1);
    const file = this.files.at(-1);
    if (sign === '\\') return this.#add({ kind: 'note', text: line.slice(2) });
    if (sign === '+') {
      this.#leftAfter -= 1;
      if (file !== undefined) file.added += 1;
      return this.#add({ kind: 'added', text, after: this.#after++ });
    }
    this.#leftBefore -= 1;
    if (sign === '-') {
      if (file !== undefined) file.removed += 1;
      return this.#add({ kind: 'removed', text, before: this.#before++ });
    }
    this.#leftAfter -= 1;
    this.#add({ kind: 'same', text, before: this.#before++, after: this.#after++ });
  }

  #plain(line: string): void {
    if (this.files.length === 0) this.#begin('');
    this.#add({ kind: 'note', text: line });
  }

  #add(line: Pick<PatchLine, 'kind' | 'text'> & Partial<PatchLine>): void {
    this.files.at(-1)?.lines.push({ before: undefined, after: undefined, ...line });
  }
}

/** The name in `a/name b/name`. If the two differ, a later line has it. */
function pathOfPagePatch(header: string): string {
  const names = header.slice('diff --git '.length);
  const quoted = /"((?:[^"\\]|\\.)*)"$/.exec(names)?.[0];
  if (quoted !== undefined) return nameInPagePatch(quoted);
  const half = (names.length - 1) / 2;
  const [before, after] = [names.slice(2, half), names.slice(half + 3)];
  return before === after ? after : (/ b\/(.*)$/.exec(names)?.[1] ?? names);
}

/** A name as git writes it: in quotes, with the bytes of what is not plain in octal, or as it is. */
function nameInPagePatch(text: string): string {
  const inner = /^"(.*)"$/.exec(text)?.[1];
  const name = inner === undefined ? text : unescapePatchName(inner);
  return name.replace(/^b\//, '');
}

function unescapePatchName(text: string): string {
  const bytes = text.match(/\\[0-7]{3}|\\.|[^\\]+/g)?.flatMap((piece) => {
    if (!piece.startsWith('\\')) return [...encoder.encode(piece)];
    if (/^\\\d/.test(piece)) return [Number.parseInt(piece.slice(1), 8)];
    return [...encoder.encode(ESCAPES[piece] ?? piece.slice(1))];
  });
  return decoder.decode(Uint8Array.from(bytes ?? []));
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const ESCAPES: Readonly<Record<string, string>> = {
  '\\n': '\n',
  '\\t': '\t',
  '\\r': '\r',
  '\\a': '\u0007',
  '\\b': '\b',
  '\\f': '\f',
  '\\v': '\v',
};
