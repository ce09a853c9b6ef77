// A command as data: one or two words, options, and a function that returns an exit code.
//
// An option parses its own text, so `run` gets typed values. Help, completion and unknown flags are handled in
// command-line.ts for all commands.

import { UsageError } from '@drover/core/errors';
import type { Io } from '../io.ts';
import { suggestion } from '@drover/documents/suggestion';

export type Option<Value> = {
  readonly about: string;
  /** The heading in the help under which it stands. */
  readonly group: string;
  /** The word for its value in the help; absent for a flag, which has none. */
  readonly takes?: string;
  readonly choices?: readonly string[];
  /** An older name that still works. Help and completion do not show it. */
  readonly formerly?: string;
  /** From what was typed, one text per time it was given. */
  readonly read: (texts: readonly string[]) => Value;
};

type OptionTable = Readonly<Record<string, Option<unknown>>>;
export type Values<Options extends OptionTable> = {
  readonly [Name in keyof Options]: Options[Name] extends Option<infer Value> ? Value : never;
};

export type Word = {
  readonly name: string;
  readonly about: string;
  readonly required: boolean;
  /** Any number of them; only for the second. */
  readonly many?: true;
  /** What the shell offers to complete it with; `first` is the word before it. */
  readonly offered?: (io: Io, first: string | undefined) => readonly string[] | Promise<readonly string[]>;
};
type Example = readonly [line: string, about: string];

type Declaration<Options extends OptionTable> = {
  readonly word?: Word;
  /** Behind the first one; it is never required. */
  readonly second?: Word;
  readonly options: Options;
  readonly examples: readonly Example[];
  readonly run: (values: Values<Options> & Words, io: Io) => Promise<number>;
};

type Words = {
  readonly word: string | undefined;
  readonly second: string | undefined;
  readonly others: readonly string[]; // behind the second, if there may be many
};

/** What was typed: the words, and each option's texts. */
export type Typed = Omit<Words, 'others'> & Partial<Words> & { readonly texts: ReadonlyMap<string, readonly string[]> };

export type Command = {
  readonly word?: Word;
  readonly second?: Word;
  readonly options: OptionTable;
  readonly examples: readonly Example[];
  readonly run: (typed: Typed, io: Io) => Promise<number>;
};

export function command<const Options extends OptionTable>(declaration: Declaration<Options>): Command {
  return {
    ...declaration,
    run: async ({ word, second, others = [], texts }, io) => {
      const read = Object.entries(declaration.options).map(([name, option]) => [name, readOption(name, option, texts)]);
      return declaration.run({ ...(Object.fromEntries(read) as Values<Options>), word, second, others }, io);
    },
  };
}

/** Letters that stand for an option, in every command that has it. */
export const SHORT_FORMS: ReadonlyMap<string, string> = new Map([
  ['model', 'm'],
  ['cwd', 'C'],
  ['yes', 'y'],
  ['workers', 'w'],
]);

/** Every accepted name with its option, former names included. */
export function acceptedNames(options: OptionTable): readonly (readonly [name: string, option: Option<unknown>])[] {
  return Object.entries(options).flatMap(([name, option]) =>
    option.formerly === undefined
      ? [[name, option] as const]
      : [[name, option] as const, [option.formerly, option] as const],
  );
}

function readOption(name: string, option: Option<unknown>, texts: Typed['texts']): unknown {
  const current = texts.get(name) ?? [];
  const former = option.formerly === undefined ? [] : (texts.get(option.formerly) ?? []);
  try {
    return option.read([...current, ...former]);
  } catch (error) {
    const typed = current.length === 0 && former.length > 0 ? option.formerly : name;
    if (error instanceof UsageError) throw new UsageError(`--${typed}: ${error.message}`, { cause: error });
    throw error;
  }
}

export function flag(group: string, about: string): Option<boolean> {
  return { group, about, read: (texts) => texts.length > 0 };
}

export function value<Value>(
  group: string,
  takes: string,
  about: string,
  parse: (text: string) => Value,
): Option<Value | undefined> {
  return {
    group,
    takes,
    about,
    read: (texts) => {
      if (texts.length > 1) throw new UsageError('give it once');
      return texts[0] === undefined ? undefined : parse(texts[0]);
    },
  };
}

export function list<Value>(
  group: string,
  takes: string,
  about: string,
  parse: (text: string) => Value,
): Option<readonly Value[]> {
  return { group, takes, about: `${about} (repeatable)`, read: (texts) => texts.map(parse) };
}

export function choice<const Choice extends string>(
  group: string,
  about: string,
  choices: readonly Choice[],
): Option<Choice | undefined> {
  const parse = (text: string): Choice => {
    const found = choices.find((candidate) => candidate === text);
    if (found !== undefined) return found;
    throw new UsageError(`'${text}' is none of ${choices.join(', ')}${suggestion(text, choices)}`);
  };
  return { ...value(group, choices.join('|'), about, parse), choices };
}

/** For options that are text and nothing else. */
export function nonEmpty(text: string): string {
  if (text.trim() === '') throw new UsageError('it needs a value');
  return text;
}
