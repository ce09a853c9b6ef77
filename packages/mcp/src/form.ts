// The form of a server's question: fields that the user answers in words, one at a time.
//
// The schema is hostile input: no pattern of it runs, and everything of it that is shown is bounded.

import type { AskedField } from '@drover/protocol/events';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { cleanVisibleText } from './hostile/listed-tool.ts';

const FIELDS_MAX = 20;
const CHOICES_MAX = 100;
const NAME_CHARS_MAX = 200;
const TEXT_CHARS_MAX = 10_000;

export type FieldValue = string | number | boolean | string[];

export type Field = {
  /** As the server knows it. */
  readonly key: string;
  /** As the user sees it. */
  readonly asked: AskedField;
  /** Values behind the choices that the user sees. */
  readonly values: readonly string[];
  readonly schema: JsonObject;
};

/** Undefined if the user could not fill it in. */
export function fieldsOf(schema: JsonObject): readonly Field[] | undefined {
  const properties = isJsonObject(schema['properties'] ?? null)
    ? Object.entries(schema['properties'] as JsonObject)
    : [];
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  if (properties.length > FIELDS_MAX) return undefined;
  const fields = properties.map(([key, field]) => fieldOf(key, field, required.includes(key)));
  return fields.every((field) => field !== undefined) ? fields : undefined;
}

function fieldOf(key: string, given: Json, required: boolean): Field | undefined {
  if (!isJsonObject(given)) return undefined;
  const choices = choicesOf(given);
  const kind = kindOf(given, choices !== undefined);
  if (kind === undefined || (choices?.length ?? 0) > CHOICES_MAX) return undefined;
  const [title, about] = [given['title'], given['description']].map((each) =>
    cleanVisibleText(each ?? '', NAME_CHARS_MAX),
  );
  const fallback = defaultOf(given['default'], choices);
  const asked: AskedField = {
    name: cleanVisibleText(key, NAME_CHARS_MAX),
    kind,
    required,
    ...((title !== '' || about !== '') && { about: [title, about].filter((each) => each !== '').join(': ') }),
    ...(choices && { choices: choices.map(({ shown }) => shown) }),
    ...(fallback !== undefined && { default: fallback }),
  };
  return { key, asked, values: (choices ?? []).map(({ value }) => value), schema: given };
}

function kindOf({ type }: JsonObject, hasChoices: boolean): AskedField['kind'] | undefined {
  if (type === 'array') return hasChoices ? 'choices' : undefined;
  if (hasChoices) return 'choice';
  if (type === 'boolean') return 'yes or no';
  if (type === 'number' || type === 'integer') return 'number';
  return type === 'string' ? 'text' : undefined;
}

type Choice = { readonly value: string; readonly shown: string };

function choicesOf(field: JsonObject): readonly Choice[] | undefined {
  const { items = null } = field;
  const source = isJsonObject(items) ? items : field;
  const titled = source['oneOf'] ?? source['anyOf'];
  if (Array.isArray(titled))
    return titled.filter(isJsonObject).map((each) => choiceOf(each['const'] ?? '', each['title']));
  const values = source['enum'];
  if (!Array.isArray(values)) return undefined;
  const names = Array.isArray(source['enumNames']) ? source['enumNames'] : [];
  return values.map((value, at) => choiceOf(value, names[at]));
}

function choiceOf(value: Json, name: Json | undefined): Choice {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { value: text, shown: cleanVisibleText(typeof name === 'string' ? name : text, NAME_CHARS_MAX) };
}

function defaultOf(given: Json | undefined, choices: readonly Choice[] | undefined): string | undefined {
  if (given === undefined || given === null) return undefined;
  if (given === true) return 'yes';
  if (given === false) return 'no';
  const all = Array.isArray(given) ? given : [given];
  const texts = all.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  const shown = texts.map(
    (text) => choices?.find(({ value }) => value === text)?.shown ?? cleanVisibleText(text, NAME_CHARS_MAX),
  );
  return shown.join(', ');
}

type Read = { readonly value?: FieldValue } | { readonly mistake: string };

/** Reads the user's words. No words take the default; without one an optional field stays out. */
export function readField(field: Field, words: string): Read {
  const { asked, schema } = field;
  const said = words.trim();
  if (said === '') {
    if (schema['default'] !== undefined && schema['default'] !== null)
      return { value: schema['default'] as FieldValue };
    return asked.required ? { mistake: 'it needs an answer' } : {};
  }
  switch (asked.kind) {
    case 'text':
      return readText(words, schema);
    case 'number':
      return readNumber(said, schema);
    case 'yes or no':
      return YES_OR_NO.has(said.toLowerCase())
        ? { value: YES_OR_NO.get(said.toLowerCase()) === true }
        : { mistake: 'say yes or no' };
    case 'choice':
      return readChoice(field, said);
    case 'choices':
      return readChoices(field, said);
  }
}

const YES_OR_NO = new Map([
  ...['y', 'yes', 'true'].map((word) => [word, true] as const),
  ...['n', 'no', 'false'].map((word) => [word, false] as const),
]);

function readText(words: string, { minLength, maxLength }: JsonObject): Read {
  const most = Math.min(typeof maxLength === 'number' ? maxLength : TEXT_CHARS_MAX, TEXT_CHARS_MAX);
  if (words.length > most) return { mistake: `it takes at most ${most} characters` };
  if (typeof minLength === 'number' && words.length < minLength)
    return { mistake: `it takes at least ${minLength} characters` };
  return { value: words };
}

function readNumber(said: string, { type, minimum, maximum }: JsonObject): Read {
  const value = Number(said);
  if (!Number.isFinite(value)) return { mistake: 'it takes a number' };
  if (type === 'integer' && !Number.isInteger(value)) return { mistake: 'it takes a whole number' };
  if (typeof minimum === 'number' && value < minimum) return { mistake: `it takes at least ${minimum}` };
  if (typeof maximum === 'number' && value > maximum) return { mistake: `it takes at most ${maximum}` };
  return { value };
}

/** By its number, or as it is written. */
function readChoice({ asked: { choices = [] }, values }: Field, said: string): Read {
  const written = said.toLowerCase();
  const at = choices.findIndex((shown, index) =>
    [shown, values[index]].some((each) => each?.toLowerCase() === written),
  );
  const value = values[at === -1 ? Number(said) - 1 : at];
  return value === undefined ? { mistake: `it takes one of: ${choices.join(', ')}` } : { value };
}

function readChoices(field: Field, said: string): Read {
  const each = said.split(',').map((part) => readChoice(field, part.trim()));
  const mistake = each.find((read) => 'mistake' in read);
  return mistake ?? { value: each.flatMap((read) => ('value' in read ? [String(read.value)] : [])) };
}
