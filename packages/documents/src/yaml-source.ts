// A YAML text as plain values, with the position of every value and key.
//
// Guarantees
//   1. Parsing never throws: broken YAML, nesting that is too deep and alias bombs are mistakes with an offset.
//   2. Every path leads to an offset in the text. A path to a missing value leads to its nearest parent.
//   3. A mapping becomes an object that holds its own keys only. `__proto__` is refused as a key.

import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
} from 'yaml';

const DEPTH_MAX = 100;
/** Values that aliases may add to a document. */
const ALIASED_VALUES_MAX = 100_000;
const SHOWN_CHARS_MAX = 60;
const TOO_DEEP = `this is nested more than ${DEPTH_MAX} levels deep; flatten it`;

export type Path = readonly PropertyKey[];

export type Mistake = { readonly offset: number; readonly message: string };

/** A value in the text, and the key it belongs to where its parent is a mapping. */
type Found = { readonly node: Node | null; readonly key: Node | undefined };

export class YamlSource {
  readonly #text: string;
  readonly #document: Document | undefined;
  readonly #mayAlias: boolean;
  readonly #anchors = new Map<string, Node>(); // the latest of each name, in text order
  readonly #targets = new Map<Alias, Node>();
  readonly #open = new Set<Node>(); // anchored values that are being expanded for an alias
  #aliasedValues = 0;
  /** Mistakes of the YAML itself. With any of them, `value` may differ from the author's intent. */
  readonly mistakes: Mistake[] = [];
  /** Undefined for an empty text. */
  readonly value: unknown;

  constructor(text: string, { mayAlias }: { readonly mayAlias: boolean }) {
    this.#text = text;
    this.#mayAlias = mayAlias;
    this.#document = this.#parse();
    if (this.#document === undefined || this.mistakes.length > 0) return;
    const { contents } = this.#document;
    this.value = this.isNothing(contents) ? undefined : this.#valueOf(contents, 0);
  }

  #parse(): Document | undefined {
    try {
      const document = parseDocument(this.#text, { prettyErrors: false });
      for (const { pos, message } of document.errors)
        this.mistakes.push({ offset: pos[0], message: /call stack/.test(message) ? TOO_DEEP : message });
      return document;
    } catch (error) {
      // The stack overflows before the parser can report a position.
      if (!(error instanceof RangeError)) throw error;
      this.mistakes.push({ offset: 0, message: TOO_DEEP });
      return undefined;
    }
  }

  /** `line:column` of an offset, both from 1. yaml's own counter misses lines of a broken text. */
  position(offset: number): string {
    const before = this.#text.slice(0, offset).split('\n');
    return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
  }

  find(path: Path): Found | undefined {
    let found: Found = { node: this.#document?.contents ?? null, key: undefined };
    for (const step of path) {
      const parent = this.#resolved(found.node);
      if (isSeq(parent) && typeof step === 'number' && step < parent.items.length)
        found = { node: parent.items[step] as Node | null, key: undefined };
      else {
        const pair = isMap(parent)
          ? (parent.items as Pair<Node, Node | null>[]).find(isYamlKeyCalled(step))
          : undefined;
        if (pair === undefined) return undefined;
        found = { node: pair.value, key: pair.key };
      }
    }
    return found;
  }

  /** The start of the value, or of its nearest existing parent. */
  offset(path: Path): number {
    for (let length = path.length; length >= 0; length--) {
      const found = this.find(path.slice(0, length));
      const start = found?.node?.range?.[0] ?? found?.key?.range?.[0];
      if (start !== undefined) return start;
    }
    return 0;
  }

  keyOffset(path: Path): number {
    return this.find(path)?.key?.range?.[0] ?? this.offset(path);
  }

  /** The position of `piece` inside a longer value, or the start of the value. */
  offsetIn(path: Path, piece: string): number {
    const start = this.offset(path);
    const at = this.written(path).indexOf(piece);
    return start + Math.max(0, at);
  }

  /** The characters of a value exactly as in the text. */
  written(path: Path): string {
    const [from, to] = this.find(path)?.node?.range ?? [0, 0];
    return this.#text.slice(from, to);
  }

  /** A value in a form for sentences. */
  shown(path: Path): string {
    const node = this.#resolved(this.find(path)?.node ?? null);
    if (isMap(node)) return 'a map';
    if (isSeq(node)) return 'a list';
    if (this.isNothing(node)) return 'nothing';
    const written = this.written(path).trim();
    if (!isScalar(node) || typeof node.value !== 'string') return written.slice(0, SHOWN_CHARS_MAX);
    return `'${node.value.slice(0, SHOWN_CHARS_MAX)}'`;
  }

  isNothing(node: unknown): boolean {
    return node === null || node === undefined || (isScalar(node) && node.value === null);
  }

  #resolved(node: Node | null): Node | null {
    return isAlias(node) ? (this.#targets.get(node) ?? null) : node;
  }

  #valueOf(node: unknown, depth: number): unknown {
    if (this.#open.size > 0) this.#aliasedValues += 1;
    if (depth > DEPTH_MAX) return this.#refuse(node, TOO_DEEP);
    if (isAlias(node)) return this.#aliased(node, depth);
    if (isNode(node) && node.anchor !== undefined && this.#open.size === 0) this.#anchors.set(node.anchor, node);
    if (isMap(node)) return this.#mapping(node.items as Pair[], depth);
    if (isSeq(node)) return node.items.map((item) => this.#valueOf(item, depth + 1));
    return isScalar(node) ? node.value : null;
  }

  #mapping(pairs: readonly Pair[], depth: number): object {
    const values: Record<string, unknown> = {};
    for (const { key, value } of pairs) {
      const name = isScalar(key) ? String(key.value) : undefined;
      if (name === undefined) this.#refuse(key, 'a key must be text');
      else if (name === '__proto__') this.#refuse(key, "a key can't be called __proto__; choose another name");
      else if (Object.hasOwn(values, name)) this.#refuse(key, `the key ${name} is given twice; remove one`);
      else values[name] = this.#valueOf(value, depth + 1);
    }
    return values;
  }

  #aliased(alias: Alias, depth: number): unknown {
    if (!this.#mayAlias) return this.#refuse(alias, `the alias *${alias.source} is not read; write the value itself`);
    const node = this.#targets.get(alias) ?? this.#anchors.get(alias.source);
    if (node === undefined) return this.#refuse(alias, `there is no anchor &${alias.source} before this alias`);
    if (this.#open.has(node)) return this.#refuse(alias, `the alias *${alias.source} stands inside its own anchor`);
    if (this.#aliasedValues > ALIASED_VALUES_MAX)
      return this.#refuse(alias, `the aliases make more than ${ALIASED_VALUES_MAX} values; use fewer`);
    this.#targets.set(alias, node);
    this.#open.add(node);
    const value = this.#valueOf(node, depth + 1);
    this.#open.delete(node);
    return value;
  }

  #refuse(node: unknown, message: string): undefined {
    const range = typeof node === 'object' && node !== null && 'range' in node ? (node as Node).range : undefined;
    this.mistakes.push({ offset: range?.[0] ?? 0, message });
    return undefined;
  }
}

function isYamlKeyCalled(name: PropertyKey): (pair: Pair<Node, Node | null>) => boolean {
  return ({ key }) => isScalar(key) && String(key.value) === String(name);
}
