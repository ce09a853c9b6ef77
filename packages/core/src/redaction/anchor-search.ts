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
  readonly #found: readonly (readonly number[])[];
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
    return this.#found[cursor.row / this.#width] ?? [];
  }

  /** How many characters before the cursor could be the beginning of a literal. */
  depth(cursor: Cursor): number {
    return this.#depths[cursor.row / this.#width] ?? 0;
  }
}

// Node 0 is the root. Children are a linked list, since most nodes have one.
type Trie = {
  readonly size: number;
  readonly columns: Uint8Array; // by node: the column that leads to it
  readonly depths: Uint16Array;
  readonly children: Int32Array; // by node: its first child, or 0
  readonly siblings: Int32Array; // by node: the next child of its parent, or 0
  readonly found: number[][]; // by node: which literals end there
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

function plant(literals: readonly string[], columns: Uint8Array): Trie {
  const sizeMax = 1 + literals.reduce((sum, literal) => sum + literal.length, 0);
  const trie = {
    size: 1,
    columns: new Uint8Array(sizeMax),
    depths: new Uint16Array(sizeMax),
    children: new Int32Array(sizeMax),
    siblings: new Int32Array(sizeMax),
    found: [[]] as number[][],
  };
  for (const [index, literal] of literals.entries()) {
    let node = 0;
    for (let at = 0; at < literal.length; at++) {
      const column = columns[literal.charCodeAt(at)] ?? 0;
      let child = trie.children[node] ?? 0;
      while (child !== 0 && trie.columns[child] !== column) child = trie.siblings[child] ?? 0;
      if (child === 0) {
        child = trie.size++;
        trie.columns[child] = column;
        trie.depths[child] = at + 1;
        trie.siblings[child] = trie.children[node] ?? 0;
        trie.children[node] = child;
        trie.found.push([]);
      }
      node = child;
    }
    trie.found[node]?.push(index);
  }
  return trie;
}

/** The table: each node goes on as the node of its longest proper suffix does, except where it has children. */
function connect(trie: Trie, width: number): Int32Array {
  const next = new Int32Array(trie.size * width);
  const fails = new Int32Array(trie.size); // rows
  const queue = [0];
  for (const node of queue) {
    const row = node * width;
    const fail = fails[node] ?? 0;
    if (node !== 0) next.copyWithin(row, fail, fail + width);
    for (let child = trie.children[node] ?? 0; child !== 0; child = trie.siblings[child] ?? 0) {
      const edge = row + (trie.columns[child] ?? 0);
      // The row copied says where the suffix goes; suffixes are shorter, so what they have found is complete.
      const suffix = node === 0 ? 0 : (next[edge] ?? 0);
      const suffixRow = suffix < 0 ? ~suffix : suffix;
      fails[child] = suffixRow;
      const found = trie.found[child] ?? [];
      found.push(...(trie.found[suffixRow / width] ?? []));
      next[edge] = found.length > 0 ? ~(child * width) : child * width;
      queue.push(child);
    }
  }
  return next;
}
