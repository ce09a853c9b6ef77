// Zod's issues as sentences with an offset: which key, what it must be, what it is, and the likely fix.

import type { z } from 'zod';
import { nearestKnownWord, suggestNearestWord } from './suggestion.ts';
import type { Mistake, Path, YamlSource } from './yaml-source.ts';

const NAMED_MAX = 12;
/** The message of a union without a sentence of its own. */
const NO_FORM = 'is not valid';

type Issue = z.core.$ZodIssue;
type Union = z.core.$ZodIssueInvalidUnion;

/** `what` names the whole document, as in "the config". */
export type Subject = { readonly source: YamlSource; readonly what: string };

/** Parameters of a schema's own issue. `piece` is the part of a longer text that the issue is about. */
type IssueParams = { readonly piece?: string };

/** Collects zod's data during validation, from which the sentences are made afterwards. */
export class Wording {
  // Zod copies all parts of an issue except the array of unknown keys, which it shares by reference.
  readonly #known = new WeakMap<readonly string[], readonly string[]>();

  /** Ends a sentence that starts with the name of a value. */
  readonly errorMap: z.core.$ZodErrorMap = (issue) => {
    switch (issue.code) {
      case 'unrecognized_keys':
        this.#known.set(issue.keys, keysOfDocumentSchema(issue.inst));
        return 'has an unknown key';
      case 'invalid_type':
        return `must be ${wordForSchemaKind(issue.expected)}`;
      case 'invalid_value':
        return `must be ${documentChoiceWords(issue.values.map(String))}`;
      case 'too_small':
        return documentBoundWords(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum);
      case 'too_big':
        return documentBoundWords(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum);
      case 'invalid_format':
        return issue.format === 'url' ? 'must be an address' : 'must not be empty';
      default:
        return NO_FORM;
    }
  };

  /** Mistakes in text order. At least one issue gives at least one mistake. */
  mistakes(issues: readonly Issue[], { source, what }: Subject): readonly Mistake[] {
    const all = issues.flatMap((issue) => narrowDocumentIssues(issue, source));
    const meant = new Set(all.flatMap((issue) => this.#meantKeys(issue)));
    const told = all
      .filter(({ path }) => !(meant.has(JSON.stringify(path)) && source.find(path) === undefined))
      .flatMap((issue) => this.#tell(issue, { source, what }));
    return told.toSorted((a, b) => a.offset - b.offset);
  }

  /** Misspelt keys, which must not be reported as missing too. */
  #meantKeys(issue: Issue): readonly string[] {
    if (issue.code !== 'unrecognized_keys') return [];
    const known = this.#known.get(issue.keys) ?? [];
    return issue.keys.map((key) => JSON.stringify([...issue.path, nearestKnownWord(key, known)]));
  }

  #tell(issue: Issue, { source, what }: Subject): readonly Mistake[] {
    const { path, message } = issue;
    const offset = source.offset(path);
    const name = path.length === 0 ? what : nameOfDocumentPath(path);
    const found = source.find(path);
    if (issue.code === 'unrecognized_keys') {
      const known = this.#known.get(issue.keys) ?? [];
      return issue.keys.map((key) => ({
        offset: source.keyOffset([...path, key]),
        message: `unknown key '${key}'${suggestNearestWord(key, known) || `; known are ${known.join(', ')}`}`,
      }));
    }
    if (issue.code === 'custom') {
      const { piece } = (issue.params ?? {}) as IssueParams;
      return [{ offset: piece === undefined ? offset : source.offsetIn(path, piece), message }];
    }
    if (found === undefined) return [{ offset, message: `${name} is missing; it ${message}` }];
    if (found.key !== undefined && source.isNothing(found.node))
      return [{ offset: source.keyOffset(path), message: `${name} has no value; give it one or remove it` }];
    const isLength = 'origin' in issue && issue.origin === 'array';
    const got = isLength ? '' : ` (got ${source.shown(path)})`;
    return [{ offset, message: `${name} ${message}${got}${nearAllowedValue(issue, source)}` }];
  }
}

/** The allowed value that the author most likely meant, if the value is text. */
function nearAllowedValue(issue: Issue, source: YamlSource): string {
  if (issue.code !== 'invalid_value' || kindOfDocumentValue(source, issue.path) !== 'string') return '';
  return suggestNearestWord(source.shown(issue.path).slice(1, -1), issue.values.map(String));
}

/** The issues of the form that the author most likely meant, if several forms are allowed. */
function narrowDocumentIssues(issue: Issue, source: YamlSource): readonly Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  if (issue.errors.length === 0) return [wrongDocumentChoice(issue)];
  const branches = issue.errors.map((errors) =>
    errors.map((each) => ({ ...each, path: [...issue.path, ...each.path] })),
  );
  const kind = kindOfDocumentValue(source, issue.path);
  const likely = branches.filter(
    (errors) => !errors.some((each) => isDocumentValueOfOtherKind(each, issue.path, kind)),
  );
  const [best] = likely.toSorted((a, b) => depthOfDocumentIssues(b) - depthOfDocumentIssues(a) || a.length - b.length);
  if (best !== undefined) return best.flatMap((each) => narrowDocumentIssues(each, source));
  if (issue.message !== NO_FORM) return [issue];
  const forms = branches.flatMap((errors) => errors.flatMap((each) => narrowDocumentIssues(each, source)).slice(0, 1));
  const words = [...new Set(forms.map(({ message }) => message.replace(/^must be /, '')))];
  return [{ ...issue, message: `must be ${words.join(' or ')}` }];
}

/** No form has this discriminator. */
function wrongDocumentChoice(issue: Union): Issue {
  const values = ('options' in issue ? (issue.options ?? []) : []).filter((each) => typeof each === 'string');
  return {
    code: 'invalid_value',
    values,
    path: issue.path,
    message: `must be ${documentChoiceWords(values)}`,
    input: undefined,
  };
}

function isDocumentValueOfOtherKind(issue: Issue, path: Path, kind: string): boolean {
  if (issue.path.length > path.length) return false;
  if (issue.code === 'invalid_type') return true;
  if (issue.code === 'invalid_value') return !issue.values.some((value) => typeof value === kind);
  return issue.code === 'invalid_union' && issue.errors.every(([first]) => first?.code === 'invalid_type');
}

function kindOfDocumentValue(source: YamlSource, path: Path): string {
  const shown = source.shown(path);
  if (shown.startsWith("'")) return 'string';
  return Number.isNaN(Number(shown)) ? 'other' : 'number';
}

function depthOfDocumentIssues(issues: readonly Issue[]): number {
  return Math.max(...issues.map(({ path }) => path.length));
}

function keysOfDocumentSchema(schema: unknown): readonly string[] {
  const { shape } = (schema as { readonly _zod: { readonly def: { readonly shape?: object } } })._zod.def;
  return Object.keys(shape ?? {});
}

/** Formats a path such as `tasks[0].files[1]`. */
function nameOfDocumentPath(path: Path): string {
  return path
    .map((step, at) => (typeof step === 'number' ? `[${step}]` : `${at === 0 ? '' : '.'}${String(step)}`))
    .join('');
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  array: 'a list',
  object: 'a map of keys',
  record: 'a map of keys',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

function wordForSchemaKind(expected: string): string {
  return KINDS[expected] ?? expected;
}

function documentChoiceWords(values: readonly string[]): string {
  const named = values.slice(0, NAMED_MAX).join(', ');
  if (values.length === 1) return named;
  return `one of ${named}${values.length > NAMED_MAX ? ` and ${values.length - NAMED_MAX} others` : ''}`;
}

function documentBoundWords(origin: string, comparison: string, limit: unknown): string {
  if (origin === 'array') return `must have ${comparison} ${String(limit)} ${limit === 1 ? 'entry' : 'entries'}`;
  if (origin === 'string') return `must have ${comparison} ${String(limit)} characters`;
  return `must be ${comparison} ${String(limit)}`;
}
