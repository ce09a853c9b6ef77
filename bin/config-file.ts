// A config file as it stands: YAML, read into values with the place of each, every mistake named.
//
// A mistake is `file:line:column: what; fix`, and all of a file are told at once. Keys are checked
// against one table; a key that isn't in it is a mistake, because a misspelt one that is passed over
// in silence looks like a setting that does nothing.

import type { Document, Node, Pair } from 'yaml';
import { UsageError } from '@drover/core/failure';
import type { Api, Price } from '@drover/core/model/catalog';
import { parseRule, type Rule } from '@drover/core/permission/rules';
import { parseDuration } from './quantities.ts';
import { suggestion } from './suggestion.ts';

const FILE_CHARS_MAX = 1_000_000;
const MISTAKES_MAX = 10;

export type ProviderConfig = { readonly api: Api; readonly baseUrl: string; readonly keyEnv: string | undefined };

export type Timeouts = {
  readonly headers?: number;
  readonly firstByte?: number;
  readonly silence?: number;
  readonly progress?: number;
};

/** What a config file may hold. Durations in milliseconds. */
export type Config = {
  readonly model?: string;
  readonly providers?: ReadonlyMap<string, ProviderConfig>;
  readonly prices?: ReadonlyMap<string, Price>;
  readonly charsPerToken?: number;
  readonly contextTokens?: number;
  readonly turns?: number;
  readonly workers?: number;
  readonly gates?: readonly string[];
  readonly ignore?: readonly string[];
  readonly allow?: readonly Rule[];
  readonly ask?: readonly Rule[];
  readonly deny?: readonly Rule[];
  readonly timeouts?: Timeouts;
};

export async function parseConfig(text: string, file: string): Promise<Config> {
  if (text.length > FILE_CHARS_MAX) throw new UsageError(`${file} is too large to be a config file`);
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const mistakes: string[] = [];
  const tell = (offset: number, message: string): void => {
    const { line, col } = lines.linePos(offset);
    if (mistakes.length < MISTAKES_MAX) mistakes.push(`${file}:${line}:${col}: ${message}`);
  };

  for (const error of document.errors) tell(error.pos[0], error.message);
  const config = mistakes.length > 0 ? {} : readRoot(new Reader(yaml, document, tell));
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'));
  return config;
}

function readRoot(reader: Reader): Config {
  const root = reader.document.contents;
  if (root === null || reader.isNothing(root)) return {};
  return reader.record<Config>(root, 'the config', {
    model: (node) => reader.text(node),
    providers: (node) => reader.map(node, (entry) => readProvider(reader, entry)),
    prices: (node) => reader.map(node, (entry) => readPrice(reader, entry)),
    charsPerToken: (node) => reader.number(node, 1, 32),
    contextTokens: (node) => reader.wholeNumber(node, 1_000, 100_000_000),
    turns: (node) => reader.wholeNumber(node, 1, 10_000),
    workers: (node) => reader.wholeNumber(node, 0, 64),
    gates: (node) => reader.list(node, (entry) => reader.text(entry)),
    ignore: (node) => reader.list(node, (entry) => reader.text(entry)),
    allow: (node) => reader.list(node, (entry) => reader.parsed(entry, (text) => parseRule(text, 'allow'))),
    ask: (node) => reader.list(node, (entry) => reader.parsed(entry, (text) => parseRule(text, 'ask'))),
    deny: (node) => reader.list(node, (entry) => reader.parsed(entry, (text) => parseRule(text, 'deny'))),
    timeouts: (node) =>
      reader.record<Timeouts>(node, 'timeouts', {
        headers: (entry) => reader.parsed(entry, parseDuration),
        firstByte: (entry) => reader.parsed(entry, parseDuration),
        silence: (entry) => reader.parsed(entry, parseDuration),
        progress: (entry) => reader.parsed(entry, parseDuration),
      }),
  });
}

const APIS: readonly Api[] = ['anthropic', 'openai', 'openai-chat'];

function readProvider(reader: Reader, node: Node): ProviderConfig | undefined {
  const { api, baseUrl, keyEnv } = reader.record<Partial<ProviderConfig>>(node, 'a provider', {
    api: (entry) => reader.oneOf(entry, APIS),
    baseUrl: (entry) => reader.address(entry),
    keyEnv: (entry) => reader.text(entry),
  });
  if (api !== undefined && baseUrl !== undefined) return { api, baseUrl, keyEnv };
  return reader.mistake(node, `a provider needs api (${APIS.join(', ')}) and baseUrl`);
}

function readPrice(reader: Reader, node: Node): Price | undefined {
  const dollars = (entry: Node): number | undefined => reader.number(entry, 0, 1_000_000);
  const { input, output, cacheRead, cacheWrite } = reader.record<Partial<Price>>(node, 'a price', {
    input: dollars,
    output: dollars,
    cacheRead: dollars,
    cacheWrite: dollars,
  });
  if (input === undefined || output === undefined) {
    return reader.mistake(node, 'a price needs input and output, in US dollars per million tokens');
  }
  return { input, output, cacheRead: cacheRead ?? input, cacheWrite: cacheWrite ?? input };
}

type Table<Values> = { readonly [Key in keyof Values]-?: (node: Node) => Values[Key] | undefined };

/** Reads nodes into values; tells a mistake and gives undefined where a node is something else. */
class Reader {
  readonly document: Document;
  readonly #yaml: typeof import('yaml');
  readonly #tell: (offset: number, message: string) => void;

  constructor(yaml: typeof import('yaml'), document: Document, tell: (offset: number, message: string) => void) {
    this.#yaml = yaml;
    this.document = document;
    this.#tell = tell;
  }

  mistake(node: Node, message: string): undefined {
    this.#tell(node.range?.[0] ?? 0, message);
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

  address(node: Node): string | undefined {
    const text = this.text(node);
    if (text === undefined || isAddress(text)) return text;
    return this.mistake(node, `'${text}' is not an http or https address`);
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

export function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.hostname !== '';
}
