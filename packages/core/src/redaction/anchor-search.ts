// Finds a thousand literals in a text in one pass: the automaton of Aho and Corasick as one flat table.
//
// One table look-up per character, whatever the text, so no input is slower than another. Between
// two pieces of a stream all there is to remember is the row; its depth says how many of the last
// characters could be the beginning of a literal, which is what a stream has to hold back.
//
// All characters beyond ASCII share one column. A literal with such characters may then be found
// where another one stands, so whoever asks must compare for himself.
//
// It is made once per process, but before the first word is shown, so it is made of flat arrays too.

/** Where a search stands; `at` is the next character to read. */
export type Cursor = { at: number; row: number };

const ASCII = 128;
const CODES = 65_536;

export class AnchorSearch {
  readonly #columns: Uint8Array; // by character code; column 0: in no literal
  readonly #width: number;
  readonly #next: Int32Array; // row + column -> row, or its complement where literals end there
  readonly #found: ReadonlyMap<number, readonly number[]>;
  readonly #depths: Uint16Array;

  constructor(literals: readonly string[]) {
    const { columns, width } = columnsOf(literals);
    const trie = plant(literals, columns);
    this.#columns = columns;
    this.#width = width;
    this.#next = connect(trie, width);
    this.#found = trie.found;
    this.#depths = trie.depths;
  }

  /** Reads on until literals end right before `cursor.at`, or until the end of the text: then false. */
  advance(cursor: Cursor, text: string): boolean {
    const columns = this.#columns;
    const next = this.#next;
    const length = text.length;
    let { at, row } = cursor;
    while (at < length) {
      // Both look-ups are inside their tables by construction.
      row = next[row + columns[text.charCodeAt(at++)]!]!;
      if (row < 0) {
        cursor.at = at;
        cursor.row = ~row;
        return true;
      }
    }
    cursor.at = at;
    cursor.row = row;
    return false;
  }

  /** Which literals (by their index) end where the cursor stands. */
  found(cursor: Cursor): readonly number[] {
    return this.#found.get(cursor.row / this.#width) ?? [];
  }

  /** How many characters before the cursor could be the beginning of a literal. */
  depth(cursor: Cursor): number {
    return this.#depths[cursor.row / this.#width] ?? 0;
  }
}

// Node 0 is the root. Children are a linked list, since most nodes have one.
type Trie = {
  size: number;
  readonly columns: Uint8Array; // by node: the column that leads to it
  readonly depths: Uint16Array;
  readonly children: Int32Array; // by node: its first child, or 0
  readonly siblings: Int32Array; // by node: the next child of its parent, or 0
  readonly found: Map<number, number[]>; // by node: which literals end there
};

function columnsOf(literals: readonly string[]): { columns: Uint8Array; width: number } {
  const columns = new Uint8Array(CODES);
  let width = 1;
  for (const literal of literals) {
    for (let at = 0; at < literal.length; at++) {
      const code = Math.min(literal.charCodeAt(at), ASCII);
      if (columns[code] === 0) columns[code] = width++;
    }
  }
  return { columns: columns.fill(columns[ASCII] ?? 0, ASCII), width };
}

// In order, so that each literal only leaves the path of the one before it, and nothing has to be looked
// for: this code runs once, before it is worth compiling.
function plant(literals: readonly string[], columns: Uint8Array): Trie {
  const sizeMax = 1 + literals.reduce((sum, literal) => sum + literal.length, 0);
  const trie: Trie = {
    size: 1,
    columns: new Uint8Array(sizeMax),
    depths: new Uint16Array(sizeMax),
    children: new Int32Array(sizeMax),
    siblings: new Int32Array(sizeMax),
    found: new Map(),
  };
  const keys = literals.map((literal) => columnText(literal, columns));
  const order = keys
    .map((_, index) => index)
    .sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a] === keys[b] ? a - b : 1));
  const path = [0]; // the nodes of the literal before, by depth
  let before = '';
  for (const index of order) {
    const key = keys[index]!;
    let depth = 0;
    while (depth < key.length && key.charCodeAt(depth) === before.charCodeAt(depth)) depth += 1;
    for (; depth < key.length; depth++) {
      const parent = path[depth]!;
      const node = trie.size++;
      trie.columns[node] = key.charCodeAt(depth);
      trie.depths[node] = depth + 1;
      trie.siblings[node] = trie.children[parent]!;
      trie.children[parent] = node;
      path[depth + 1] = node;
    }
    const end = path[key.length]!;
    trie.found.set(end, [...(trie.found.get(end) ?? []), index]);
    before = key;
  }
  return trie;
}

/** A literal with its columns for characters: as an order of literals that is all there is to compare. */
function columnText(literal: string, columns: Uint8Array): string {
  let text = '';
  for (let at = 0; at < literal.length; at++) text += String.fromCharCode(columns[literal.charCodeAt(at)]!);
  return text;
}

/** The table: each node goes on as the node of its longest proper suffix does, except where it has children. */
function connect({ size, children, siblings, columns, found }: Trie, width: number): Int32Array {
  const next = new Int32Array(size * width);
  const fails = new Int32Array(size); // rows
  const queue = new Int32Array(size);
  let queued = 1;
  for (let at = 0; at < queued; at++) {
    const node = queue[at]!;
    const row = node * width;
    const fail = fails[node]!;
    if (node !== 0) next.copyWithin(row, fail, fail + width);
    for (let child = children[node]!; child !== 0; child = siblings[child]!) {
      const edge = row + columns[child]!;
      // The row copied says where the suffix goes; suffixes are shorter, so what they have found is complete.
      const suffix = node === 0 ? 0 : next[edge]!;
      if (suffix < 0) {
        fails[child] = ~suffix;
        found.set(child, [...(found.get(child) ?? []), ...(found.get(~suffix / width) ?? [])]);
      } else fails[child] = suffix;
      next[edge] = found.has(child) ? ~(child * width) : child * width;
      queue[queued++] = child;
    }
  }
  return next;
}
