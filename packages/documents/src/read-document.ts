// Reads a YAML text that a person wrote by one zod schema.
//
// Guarantees
//   1. Reading never throws: it returns the value, or sentences of the form `file:line:column: what; fix`.
//   2. All mistakes are told at once, at most MISTAKES_MAX, each with a position inside the text.
//   3. An unknown key is a mistake, if the schema is strict, and comes with the known key nearest to it.
//
// This module imports yaml and zod, so callers import it when there is a file to read.

import type { z } from 'zod';
import { Wording } from './mistakes.ts';
import { type Mistake, type Path, YamlSource } from './yaml-source.ts';

const MISTAKES_MAX = 10;

export type Format<Value> = {
  /** Names the document in sentences, as in "the config". */
  readonly what: string;
  readonly schema: z.ZodType<Value>;
  /** Resolve aliases. Without it an alias is a mistake. */
  readonly mayAlias?: boolean;
};

export type ReadDocument<Value> = {
  readonly value: Value;
  /** `file:line:column` of a value, or of its nearest parent. */
  readonly place: (path: Path) => string;
  /** The characters of a value exactly as in the text. */
  readonly written: (path: Path) => string;
};

/** `file` names the text in messages only. */
export function readDocument<Value>(
  text: string,
  file: string,
  { what, schema, mayAlias = false }: Format<Value>,
): ReadDocument<Value> | { readonly mistakes: readonly string[] } {
  const source = new YamlSource(text, { mayAlias });
  const place = (offset: number): string => `${file}:${source.position(offset)}`;
  const refused = (mistakes: readonly Mistake[]) => {
    const sentences = new Set(mistakes.map(({ offset, message }) => `${place(offset)}: ${message}`));
    return { mistakes: [...sentences].slice(0, MISTAKES_MAX) };
  };
  if (source.mistakes.length > 0) return refused(source.mistakes);

  const wording = new Wording();
  const checked = schema.safeParse(source.value ?? {}, { error: wording.errorMap, jitless: true });
  if (checked.success) {
    const { data } = checked;
    return { value: data, place: (path) => place(source.offset(path)), written: (path) => source.written(path) };
  }
  const { issues } = checked.error;
  if (source.value !== undefined) return refused(wording.mistakes(issues, { source, what }));
  const needed = issues.flatMap(({ path }) => (path.length === 1 ? [String(path[0])] : []));
  return refused([
    { offset: 0, message: `${what} is empty${needed.length === 0 ? '' : `; it needs ${needed.join(', ')}`}` },
  ]);
}
