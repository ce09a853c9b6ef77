// A command as data: one or two words, options, and a function that returns an exit code.
//
// An option parses its own text, so `run` gets typed values. Help, completion and unknown flags are handled in
// command-line.ts for all commands.

import { UsageError } from '@drover/core/errors';
import type { Io } from '../io.ts';
import { suggestNearestWord } from '@drover/documents/suggestion';

export type Option<Value> = {
  readonly about: string;
  /** The heading in the help under which the option is listed. */
  readonly group: string;
  /** The placeholder of its value in the help; absent for a flag. */
  readonly takes?: string;
  readonly choices?: readonly string[];
  /** An older name that still works. Help and completion do not show it. */
  readonly formerly?: string;
  /** Parses the typed texts, one for each time the option was given. */
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
  /** True if any number is allowed; only for the second word. */
  readonly many?: true;
  /** Candidates for completion by the shell; `first` is the word before it. */
  readonly offered?: (io: Io, first: string | undefined) => readonly string[] | Promise<readonly string[]>;
};
type Example = readonly [line: string, about: string];

type Declaration<Options extends OptionTable> = {
  readonly word?: Word;
  /** A second word; never required. */
  readonly second?: Word;
  readonly options: Options;
  readonly examples: readonly Example[];
  readonly run: (values: Values<Options> & Words, io: Io) => Promise<number>;
};

type Words = {
  readonly word: string | undefined;
  readonly second: string | undefined;
  readonly others: readonly string[]; // further words after the second, if there may be many
};

/** The typed words, and the texts of each option. */
export type Typed = Omit<Words, 'others'> & Partial<Words> & { readonly texts: ReadonlyMap<string, readonly string[]> };

export type Command = {
  readonly word?: Word;
  readonly second?: Word;
  readonly options: OptionTable;
  readonly examples: readonly Example[];
  readonly run: (typed: Typed, io: Io) => Promise<number>;
};

export function defineCommand<const Options extends OptionTable>(declaration: Declaration<Options>): Command {
  return {
    ...declaration,
    run: async ({ word, second, others = [], texts }, io) => {
      const read = Object.entries(declaration.options).map(([name, option]) => [
        name,
        readOptionValue(name, option, texts),
      ]);
      return declaration.run({ ...(Object.fromEntries(read) as Values<Options>), word, second, others }, io);
    },
  };
}

/** Letters for options, the same in every command that has the option. */
export const SHORT_FORMS: ReadonlyMap<string, string> = new Map([
  ['model', 'm'],
  ['cwd', 'C'],
  ['yes', 'y'],
  ['workers', 'w'],
]);

/** Every accepted name with its option, former names included. */
export function listOptionNames(options: OptionTable): readonly (readonly [name: string, option: Option<unknown>])[] {
  return Object.entries(options).flatMap(([name, option]) =>
    option.formerly === undefined
      ? [[name, option] as const]
      : [[name, option] as const, [option.formerly, option] as const],
  );
}

function readOptionValue(name: string, option: Option<unknown>, texts: Typed['texts']): unknown {
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

export function flagOption(group: string, about: string): Option<boolean> {
  return { group, about, read: (texts) => texts.length > 0 };
}

export function valueOption<Value>(
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

export function listOption<Value>(
  group: string,
  takes: string,
  about: string,
  parse: (text: string) => Value,
): Option<readonly Value[]> {
  return { group, takes, about: `${about} (repeatable)`, read: (texts) => texts.map(parse) };
}

export function choiceOption<const Choice extends string>(
  group: string,
  about: string,
  choices: readonly Choice[],
): Option<Choice | undefined> {
  const parse = (text: string): Choice => {
    const found = choices.find((candidate) => candidate === text);
    if (found !== undefined) return found;
    throw new UsageError(`'${text}' is none of ${choices.join(', ')}${suggestNearestWord(text, choices)}`);
  };
  return { ...valueOption(group, choices.join('|'), about, parse), choices };
}

/** For options whose value is text and nothing else. */
export function parseNonEmpty(text: string): string {
  if (text.trim() === '') throw new UsageError('it needs a value');
  return text;
}
