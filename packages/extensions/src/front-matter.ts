// Reads the front matter of a Markdown file as people write it, which is often not valid YAML.
//
// Guarantees
//   1. Reading never throws. A file without front matter is a mistake, as `file:line: what; fix`.
//   2. Each top-level key is read by itself. A value that is not valid YAML, such as unquoted text with `: `, is taken
//      as the text that stands there, and the other keys keep their values.
//   3. A byte order mark, CRLF, a missing end mark, and `---` in the body are accepted.

import { type Document, parseDocument } from 'yaml';
import type { Json } from '@drover/protocol/json';

const KEY = /^([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]+|$)/;
const MARK = /^---[ \t]*$/;
// A value may not make the parser work for long.
const VALUE_CHARS_MAX = 64 * 1024;

type Field = { readonly value: Json; readonly line: number };

export type FrontMatter = {
  readonly fields: ReadonlyMap<string, Field>;
  readonly body: string;
};

/** `file` names the file in messages. */
export function readFrontMatter(text: string, file: string): FrontMatter | { readonly mistake: string } {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/);
  const first = lines.findIndex((line) => line.trim() !== '');
  if (!MARK.test(lines[first] ?? ''))
    return {
      mistake: `${file}:${Math.max(1, first + 1)}: the front matter is missing; begin the file with a line ---`,
    };
  const end = lines.findIndex((line, at) => at > first && MARK.test(line));
  const last = end === -1 ? lines.length : end;
  const fields = new Map<string, Field>();
  for (const { key, at, to } of frontMatterKeys(lines, first + 1, last))
    // The first of two equal keys counts, so a later one cannot replace what a reader has seen.
    if (!fields.has(key)) fields.set(key, { value: frontMatterValue(lines.slice(at, to), key), line: at + 1 });
  return {
    fields,
    body: lines
      .slice(last + 1)
      .join('\n')
      .trim(),
  };
}

/** The text of a field on one line; undefined if it is missing or is not text. */
export function frontMatterText({ fields }: FrontMatter, key: string): string | undefined {
  const value = fields.get(key)?.value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value.replaceAll(/\s+/g, ' ').trim() : undefined;
}

/** A list, or text with commas, as its names; undefined if the field is missing. */
export function frontMatterNames({ fields }: FrontMatter, key: string): readonly string[] | undefined {
  const value = fields.get(key)?.value;
  if (value === undefined || value === null) return undefined;
  const written = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const names = Array.isArray(value)
    ? value.map((each: Json) => (typeof each === 'string' ? each : JSON.stringify(each)))
    : written.split(/,(?![^(]*\))/);
  return names.map((name) => name.trim()).filter((name) => name !== '');
}

type KeyLines = { readonly key: string; readonly at: number; readonly to: number };

function frontMatterKeys(lines: readonly string[], from: number, to: number): readonly KeyLines[] {
  const starts: { key: string; at: number }[] = [];
  for (let at = from; at < to; at++) {
    const key = KEY.exec(lines[at] ?? '')?.[1];
    if (key !== undefined) starts.push({ key, at });
  }
  return starts.map((start, index) => ({ ...start, to: starts[index + 1]?.at ?? to }));
}

function frontMatterValue(lines: readonly string[], key: string): Json {
  const written = lines.join('\n').slice(0, VALUE_CHARS_MAX);
  const document = parseDocument(written, { logLevel: 'silent' });
  const read = document.errors.length > 0 ? undefined : plainFrontMatterValue(document, key);
  if (read !== undefined) return read;
  return written
    .replace(KEY, '')
    .replace(/^[|>][+-]?\d?[ \t]*\n/, '')
    .trim()
    .replace(/^(["'])([^]*)\1$/, '$2');
}

/** Returns undefined for a value with an alias, which is not resolved: it may stand for any amount of text. */
function plainFrontMatterValue(document: Document, key: string): Json | undefined {
  try {
    const value = document.toJS({ maxAliasCount: 0 }) as Record<string, Json> | null;
    return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value[key] ?? null) : undefined;
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}
