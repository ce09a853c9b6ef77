// The values that the files of drover share: text, bounded numbers, and text with a form of its own.
//
// `pattern` and `examples` are for editors. The parser decides, and its sentence is the one that users see.

import { z } from 'zod';
import { UsageError } from '@drover/core/errors';
import { parseBudget, parseDuration } from '../start/quantities.ts';

export const text = z.string().regex(/\S/);

export const texts = z.array(text);

export function numberField(min: number, max: number, kind = 'a number') {
  const error = `must be ${kind} from ${min} to ${max}`;
  return z.number({ error: error }).min(min, { error }).max(max, { error });
}

export function wholeNumberField(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.int({ error: error }).min(min, { error }).max(max, { error });
}

type Hints = { readonly pattern?: string; readonly examples?: string[] };

/** Text in a form that the command line accepts too. The parser's UsageError becomes a mistake at the value. */
export function parsedField<Value>(parse: (text: string) => Value, hints: Hints = {}) {
  const { examples } = hints;
  const form = examples === undefined ? text : z.string(`must be text like ${examples.join(' or ')}`).regex(/\S/);
  return form.meta(hints).transform((value, context): Value => {
    try {
      return parse(value);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      context.issues.push({ code: 'custom', message: error.message, input: value });
      return z.NEVER;
    }
  });
}

/** The sentence of the UsageError that the function throws; undefined if it throws none. */
export function fieldMistake(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

export const duration = parsedField(parseDuration, {
  pattern: '^(?=\\d)(\\d+(\\.\\d+)?h)?(\\d+(\\.\\d+)?m)?(\\d+(\\.\\d+)?s)?(\\d+(\\.\\d+)?ms)?$',
  examples: ['45m', '1h30m'],
});

export const budget = parsedField(parseBudget, {
  pattern: '^\\d+(\\.\\d+)?(usd|tok|ktok|mtok)$',
  examples: ['5usd', '200ktok'],
});

/** A map from names to values, in the order of the file. */
export function mapField<Schema extends z.ZodType>(value: Schema) {
  return z.record(z.string(), value).transform((entries) => new Map<string, z.output<Schema>>(Object.entries(entries)));
}
