// A YAML file that a person wrote: read into values with the place of each, every mistake named.
//
// A mistake is `file:line:column: what; fix`, and all of a file are told at once. Keys are checked
// against one table; a key that isn't in it is a mistake, because a misspelt one that is passed over
// in silence looks like a setting that does nothing.

import type { Document, Node, Pair } from 'yaml';
import { UsageError } from '@drover/core/errors';
import { suggestion } from './suggestion.ts';

const FILE_CHARS_MAX = 1_000_000;
const MISTAKES_MAX = 10;

/** What `read` makes of it; throws UsageError with all mistakes that were told. */
export async function readDocument<Value>(
  text: string,
  file: string,
  read: (reader: DocumentReader) => Value,
): Promise<Value> {
  if (text.length > FILE_CHARS_MAX) throw new UsageError(`${file} is too large to be read`);
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const mistakes: string[] = [];
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const tell = (offset: number, message: string): void => {
    if (mistakes.length < MISTAKES_MAX) mistakes.push(`${place(offset)}: ${message}`);
  };

  for (const error of document.errors) tell(error.pos[0], error.message);
  const value = mistakes.length > 0 ? undefined : read(new DocumentReader(yaml, document, { text, place, tell }));
  if (mistakes.length > 0 || value === undefined) throw new UsageError(mistakes.join('\n'));
  return value;
}

/** What was read, and how to speak of places in it. */
type Source = {
  readonly text: string;
  readonly place: (offset: number) => string;
  readonly tell: (offset: number, message: string) => void;
};

type Table<Values> = { readonly [Key in keyof Values]-?: (node: Node) => Values[Key] | undefined };

/** Reads nodes into values; tells a mistake and gives undefined where a node is something else. */
export class DocumentReader {
  readonly document: Document;
  readonly #yaml: typeof import('yaml');
  readonly #source: Source;

  constructor(yaml: typeof import('yaml'), document: Document, source: Source) {
    this.#yaml = yaml;
    this.document = document;
    this.#source = source;
  }

  /** Undefined for an empty file. */
  get root(): Node | undefined {
    const { contents } = this.document;
    return contents === null || this.isNothing(contents) ? undefined : contents;
  }

  /** A mistake of the whole file. */
  fail(message: string): undefined {
    this.#source.tell(0, message);
    return undefined;
  }

  /** Where it stands, for what turns out to be wrong with it later. */
  place(node: Node): string {
    return this.#source.place(node.range?.[0] ?? 0);
  }

  /** A mistake in a piece of a longer text, at the first place where that piece is written. */
  mistakeIn(node: Node, piece: string, message: string): undefined {
    const [from, to] = node.range ?? [0, 0];
    const at = this.#source.text.slice(from, to).indexOf(piece);
    this.#source.tell(from + Math.max(0, at), message);
    return undefined;
  }

  isList(node: Node): boolean {
    return this.#yaml.isSeq(node);
  }

  isMap(node: Node): boolean {
    return this.#yaml.isMap(node);
  }

  mistake(node: Node, message: string): undefined {
    this.#source.tell(node.range?.[0] ?? 0, message);
    return undefined;
  }

  isNothing(node: Node): boolean {
    return this.#yaml.isScalar(node) && node.value === null;
  }

  record<Values extends object>(node: Node, what: string, table: Table<Values>): Partial<Values> {
    const known = Object.keys(table);
    const values: Partial<Values> = {};
    for (const { key, name, value } of this.#pairs(node, what)) {
      if (!known.includes(name)) {
        this.mistake(key, `unknown key '${name}'${suggestion(name, known) || `; known are ${known.join(', ')}`}`);
        continue;
      }
      const field = name as keyof Values;
      const read = table[field](value);
      if (read !== undefined) values[field] = read;
    }
    return values;
  }

  map<Value>(node: Node, read: (node: Node) => Value | undefined): ReadonlyMap<string, Value> | undefined {
    const entries = this.#pairs(node, 'this').map(({ name, value }) => [name, read(value)] as const);
    return new Map(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])));
  }

  text(node: Node): string | undefined {
    if (this.#yaml.isScalar(node) && typeof node.value === 'string' && node.value.trim() !== '') return node.value;
    return this.mistake(node, `this must be text, not ${this.#kind(node)}`);
  }

  list<Value>(node: Node, read: (node: Node) => Value | undefined): readonly Value[] | undefined {
    if (!this.#yaml.isSeq(node)) return this.mistake(node, `this must be a list, not ${this.#kind(node)}`);
    return (node.items as Node[]).map(read).filter((item) => item !== undefined);
  }

  number(node: Node, min: number, max: number): number | undefined {
    const value = this.#yaml.isScalar(node) ? node.value : undefined;
    if (typeof value === 'number' && value >= min && value <= max) return value;
    return this.mistake(node, `this must be a number from ${min} to ${max}`);
  }

  wholeNumber(node: Node, min: number, max: number): number | undefined {
    const value = this.#yaml.isScalar(node) ? node.value : undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    return this.mistake(node, `this must be a whole number from ${min} to ${max}`);
  }

  oneOf<Choice extends string>(node: Node, choices: readonly Choice[]): Choice | undefined {
    const text = this.text(node);
    const found = choices.find((candidate) => candidate === text);
    if (text === undefined || found !== undefined) return found;
    return this.mistake(node, `'${text}' is none of ${choices.join(', ')}${suggestion(text, choices)}`);
  }

  /** Text that is read further by what reads it on the command line, too. */
  parsed<Value>(node: Node, parse: (text: string) => Value): Value | undefined {
    const text = this.text(node);
    try {
      return text === undefined ? undefined : parse(text);
    } catch (error) {
      if (error instanceof UsageError) return this.mistake(node, error.message);
      throw error;
    }
  }

  #pairs(node: Node, what: string): readonly { readonly key: Node; readonly name: string; readonly value: Node }[] {
    if (!this.#yaml.isMap(node)) {
      this.mistake(node, `${what} must be a map of keys, not ${this.#kind(node)}`);
      return [];
    }
    return (node.items as Pair<Node, Node | null>[]).flatMap(({ key, value }) => {
      const name = this.#yaml.isScalar(key) ? String(key.value) : '';
      if (value !== null && !this.isNothing(value)) return [{ key, name, value }];
      this.mistake(key, `'${name}' has no value; give it one or remove it`);
      return [];
    });
  }

  #kind(node: Node): string {
    if (this.#yaml.isMap(node)) return 'a map';
    if (this.#yaml.isSeq(node)) return 'a list';
    if (this.#yaml.isAlias(node)) return 'an alias';
    return this.isNothing(node) ? 'nothing' : `'${String(this.#yaml.isScalar(node) ? node.value : node)}'`;
  }
}
