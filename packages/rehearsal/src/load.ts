// Scripts from files: YAML, checked with line and column, or a module that exports one.

import { readFile } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Document, LineCounter } from 'yaml';
import type { z } from 'zod';
import { ScriptError, type AnswerSource, type Script } from './script.ts';

const MODULES = ['.ts', '.mts', '.js', '.mjs'];
/** A word is taken for a misspelled one up to this many wrong letters. */
const TYPOS_MAX = 2;
const NAMED_MAX = 12;

/** Returns the file's text, or rejects with an error whose message is `what; fix`. */
export type ReadText = (path: string) => Promise<string>;

const readPlainly: ReadText = (path) =>
  readFile(path, 'utf8').catch((error: Error) => {
    throw new Error(`cannot be read: ${error.message}; name a script that exists`, { cause: error });
  });

/**
 * Throws a ScriptError whose message is `path:line:column: what; fix`. Pass `read` to bound what is read: the
 * default waits for the writer of a pipe.
 */
export async function loadScript(path: string, read: ReadText = readPlainly): Promise<Script> {
  // A module is read too, so that `read` refuses pipes and devices before Node opens the module.
  const text = await read(path).catch((error: unknown) => {
    throw new ScriptError(`${path}:1:1: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  });
  return MODULES.includes(extname(path)) ? await importScript(path) : await parseScript(text, path);
}

/** `path` is only for messages. */
export async function parseScript(text: string, path: string): Promise<Script> {
  const [{ LineCounter: Lines, isSeq, parseDocument }, { FAULT_NAMES, FIELD_NAMES, scriptSchema }] = await Promise.all([
    import('yaml'),
    import('./schema.ts'),
  ]);
  const lines = new Lines();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken !== undefined)
    throw new ScriptError(
      `${path}:${position(lines, broken.pos[0])}: ${broken.message.toLowerCase()}; correct the YAML`,
    );
  // A bare list is the answers of a script that has nothing else.
  const isBare = isSeq(document.contents);
  const checked = scriptSchema.safeParse(isBare ? { answers: document.toJS() } : (document.toJS() ?? {}));
  if (checked.success) return nonEmpty(checked.data, path);
  const [issue] = checked.error.issues;
  if (issue === undefined) throw checked.error;
  const found = isBare ? { ...narrowed(issue), path: narrowed(issue).path.slice(1) } : narrowed(issue);
  const { what, fix } = worded(found, valueAt(document, found.path), { fields: FIELD_NAMES, faults: FAULT_NAMES });
  throw new ScriptError(`${path}:${position(lines, offsetOf(document, found))}: ${what}; ${fix}`);
}

/** The default export is a script, a list of answers, or a function that answers. */
async function importScript(path: string): Promise<Script> {
  const module = await import(pathToFileURL(resolve(path)).href).catch((error: unknown) => {
    throw new ScriptError(
      `${path}:1:1: cannot be imported: ${error instanceof Error ? error.message : String(error)}; correct the module`,
      { cause: error },
    );
  });
  // What a module exports was checked by its author's compiler, if at all; a script is trusted like any code that one runs.
  const exported = (module as { readonly default?: Script | readonly AnswerSource[] | AnswerSource }).default;
  if (typeof exported === 'function') return { answers: [exported] };
  if (Array.isArray(exported)) return { answers: exported };
  if (typeof exported === 'object' && exported !== null) return nonEmpty(exported as Script, path);
  throw new ScriptError(`${path}:1:1: exports no script; write \`export default { answers: [...] }\``);
}

function nonEmpty(script: Script, path: string): Script {
  if (script.answers === undefined && script.agents === undefined && script.otherwise === undefined)
    throw new ScriptError(`${path}:1:1: the script has no answers; give \`answers\` or \`agents\``);
  return script;
}

// ── what is wrong ─────────────────────────────────────────────────────────────────────────────

type Issue = z.core.$ZodIssue;

/** Where one of several forms would do, the complaint is about the form that came nearest. */
function narrowed(issue: Issue): Issue {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return issue;
  const nearest = issue.errors
    .flatMap(([first]) => (first === undefined ? [] : [first]))
    .toSorted((a, b) => score(b) - score(a))[0];
  return nearest === undefined ? issue : narrowed({ ...nearest, path: [...issue.path, ...nearest.path] });
}

function score(issue: Issue): number {
  // A wrong type at the root says only that another form was meant.
  return issue.path.length * 2 + (issue.code === 'invalid_type' || issue.code === 'invalid_value' ? 0 : 1);
}

type Names = { readonly fields: readonly string[]; readonly faults: readonly string[] };

function worded(issue: Issue, value: unknown, names: Names): { readonly what: string; readonly fix: string } {
  const field = issue.path.length === 0 ? 'the script' : `\`${issue.path.join('.')}\``;
  switch (issue.code) {
    case 'unrecognized_keys':
      return {
        what: `unknown field \`${issue.keys.join('`, `')}\` in ${field}`,
        fix: near(issue.keys[0], names.fields) ?? 'remove it, or look for the right name in the README',
      };
    case 'invalid_value':
      return { what: `${field} is ${shown(value)}`, fix: suggestion(value, issue.values.map(String)) };
    case 'invalid_type':
      if (value === undefined) return { what: `${field} is missing`, fix: `give it as ${kind(issue.expected)}` };
      return { what: `${field} is ${shown(value)}`, fix: `write ${kind(issue.expected)}` };
    case 'invalid_union':
      return {
        what: `${field} is ${value === undefined ? 'missing' : shown(value)}`,
        fix: issue.path.at(-1) === 'fault' ? suggestion(value, names.faults) : 'give one of the forms in the README',
      };
    case 'custom':
      return { what: `${field}: ${issue.message}`, fix: 'correct the expression' };
    default:
      return { what: `${field} is ${shown(value)}`, fix: issue.message };
  }
}

function shown(value: unknown): string {
  return value === undefined ? 'missing' : (JSON.stringify(value) ?? typeof value).slice(0, 60);
}

function kind(expected: string): string {
  return KINDS[expected] ?? expected;
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

function suggestion(value: unknown, allowed: readonly string[]): string {
  const more = allowed.length > NAMED_MAX ? ', … (all are in the README)' : '';
  return near(value, allowed) ?? `choose one of ${allowed.slice(0, NAMED_MAX).join(', ')}${more}`;
}

function near(value: unknown, allowed: readonly string[]): string | undefined {
  if (typeof value !== 'string') return undefined;
  const [best] = allowed.map((word) => ({ word, typos: distance(word, value) })).toSorted((a, b) => a.typos - b.typos);
  return best !== undefined && best.typos <= TYPOS_MAX ? `did you mean ${best.word}?` : undefined;
}

/** How many letters have to be changed, added or removed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const kept = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(kept, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

// ── where it stands ───────────────────────────────────────────────────────────────────────────

function valueAt(document: Document, path: readonly PropertyKey[]): unknown {
  const node = document.getIn(path, true);
  return typeof node === 'object' && node !== null && 'toJSON' in node && typeof node.toJSON === 'function'
    ? node.toJSON()
    : node;
}

/** The nearest thing that is there: an unknown key itself, the value, or what should contain it. */
function offsetOf(document: Document, issue: Issue): number {
  if (issue.code === 'unrecognized_keys') {
    const parent = issue.path.length === 0 ? document.contents : document.getIn(issue.path, true);
    const pair = itemsOf(parent).find(({ key }) => isKey(key, issue.keys[0]));
    return startOf(pair?.key) ?? startOf(parent) ?? 0;
  }
  for (let length = issue.path.length; length > 0; length--) {
    const start = startOf(document.getIn(issue.path.slice(0, length), true));
    if (start !== undefined) return start;
  }
  return startOf(document.contents) ?? 0;
}

function itemsOf(node: unknown): readonly { readonly key?: unknown }[] {
  return typeof node === 'object' && node !== null && 'items' in node && Array.isArray(node.items) ? node.items : [];
}

function isKey(key: unknown, name: string | undefined): boolean {
  return typeof key === 'object' && key !== null && 'value' in key && key.value === name;
}

function startOf(node: unknown): number | undefined {
  if (typeof node !== 'object' || node === null || !('range' in node) || !Array.isArray(node.range)) return undefined;
  const start: unknown = node.range[0];
  return typeof start === 'number' ? start : undefined;
}

function position(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `${Math.max(1, line)}:${Math.max(1, col)}`;
}
