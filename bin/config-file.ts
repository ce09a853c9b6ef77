// What a config file may hold, and how it is read.

import type { Node } from 'yaml';
import { UsageError } from '@drover/core/errors';
import type { Api, Price } from '@drover/core/model/catalog';
import type { Rule } from '@drover/core/permission/rules';
import type { SandboxMode } from '@drover/protocol/run';
import { parseDuration } from './quantities.ts';
import { readServedRule } from './permission/rule-names.ts';
import { type HostName, parseHost, SANDBOX_MODES } from './sandbox/hosts-and-modes.ts';
import { type DocumentReader, readDocument } from './yaml-document.ts';

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
  readonly textCallRetries?: number;
  readonly workers?: number;
  readonly gates?: readonly string[];
  readonly setup?: readonly string[];
  readonly ignore?: readonly string[];
  readonly allow?: readonly Rule[];
  readonly ask?: readonly Rule[];
  readonly deny?: readonly Rule[];
  readonly timeouts?: Timeouts;
  readonly sandbox?: SandboxMode;
  readonly net?: readonly HostName[];
  readonly writable?: readonly string[];
};

/** Throws UsageError for mistakes, and for characters that a person who reads the file would not see. */
export async function parseConfig(text: string, file: string): Promise<Config> {
  checkSeen(text, file);
  return readDocument(text, file, readRoot);
}

// Control characters, marks that turn text round, characters without width. A line may end with CR LF.
const UNSEEN = /(?!\r?\n|\t)[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const UNSEEN_TOLD_MAX = 10;

function checkSeen(text: string, file: string): void {
  const found = [...text.matchAll(UNSEEN)].slice(0, UNSEEN_TOLD_MAX).map(({ 0: char, index }) => {
    const before = text.slice(0, index).split('\n');
    const code = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const place = `${file}:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    return `${place}: the invisible character U+${code} may not stand in a config; remove it`;
  });
  if (found.length > 0) throw new UsageError(found.join('\n'));
}

function readRoot(reader: DocumentReader): Config {
  const { root } = reader;
  if (root === undefined) return {};
  return reader.record<Config>(root, 'the config', {
    model: (node) => reader.text(node),
    providers: (node) => reader.map(node, (entry) => readProvider(reader, entry)),
    prices: (node) => reader.map(node, (entry) => readPrice(reader, entry)),
    charsPerToken: (node) => reader.number(node, 1, 32),
    contextTokens: (node) => reader.wholeNumber(node, 1_000, 100_000_000),
    turns: (node) => reader.wholeNumber(node, 1, 10_000),
    textCallRetries: (node) => reader.wholeNumber(node, 0, 10),
    workers: (node) => reader.wholeNumber(node, 0, 64),
    gates: (node) => reader.list(node, (entry) => reader.text(entry)),
    setup: (node) => reader.list(node, (entry) => reader.text(entry)),
    ignore: (node) => reader.list(node, (entry) => reader.parsed(entry, ignorePattern)),
    allow: (node) => reader.list(node, (entry) => reader.parsed(entry, (text) => readServedRule(text, 'allow'))),
    ask: (node) => reader.list(node, (entry) => reader.parsed(entry, (text) => readServedRule(text, 'ask'))),
    deny: (node) => reader.list(node, (entry) => reader.parsed(entry, (text) => readServedRule(text, 'deny'))),
    sandbox: (node) => reader.oneOf(node, SANDBOX_MODES),
    net: (node) => reader.list(node, (entry) => reader.parsed(entry, parseHost)),
    writable: (node) => reader.list(node, (entry) => reader.text(entry)),
    timeouts: (node) =>
      reader.record<Timeouts>(node, 'timeouts', {
        headers: (entry) => reader.parsed(entry, parseDuration),
        firstByte: (entry) => reader.parsed(entry, parseDuration),
        silence: (entry) => reader.parsed(entry, parseDuration),
        progress: (entry) => reader.parsed(entry, parseDuration),
      }),
  });
}

/** As in .gitignore, but only what to leave out. */
function ignorePattern(text: string): string {
  if (text.trim() === '') throw new UsageError('an empty pattern ignores nothing');
  if (text.startsWith('!')) throw new UsageError(`'${text}' begins with !; a pattern here only says what to leave out`);
  if (text.split('[').length !== text.split(']').length) throw new UsageError(`'${text}' has an [ without its ]`);
  return text;
}

const APIS: readonly Api[] = ['anthropic', 'openai', 'openai-chat'];

function readProvider(reader: DocumentReader, node: Node): ProviderConfig | undefined {
  const { api, baseUrl, keyEnv } = reader.record<Partial<ProviderConfig>>(node, 'a provider', {
    api: (entry) => reader.oneOf(entry, APIS),
    baseUrl: (entry) => readAddress(reader, entry),
    keyEnv: (entry) => reader.text(entry),
  });
  if (api !== undefined && baseUrl !== undefined) return { api, baseUrl, keyEnv };
  return reader.mistake(node, `a provider needs api (${APIS.join(', ')}) and baseUrl`);
}

function readPrice(reader: DocumentReader, node: Node): Price | undefined {
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

function readAddress(reader: DocumentReader, node: Node): string | undefined {
  const text = reader.text(node);
  if (text === undefined || isAddress(text)) return text;
  return reader.mistake(node, `'${text}' is not an http or https address`);
}

export function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.hostname !== '';
}
