// Reads what was typed where it is plain: known flags, values in their place, a word or two.
//
// yargs decides what is right and says what is wrong, but importing it takes as long as everything else
// before the first request, and nearly all command lines have nothing wrong with them. So whatever is
// not perfectly plain (help, a mistake, a quote, anything odd) gives undefined, and yargs is asked.
// What is plain, yargs reads the same: a test compares the two.

import { acceptedNames, type Command, type Typed } from './command.ts';

export function plainlyTyped(command: Command, argv: readonly string[]): Typed | undefined {
  const options = new Map(acceptedNames(command.options));
  const texts = new Map<string, readonly string[]>();
  const words: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const typed = argv[at] ?? '';
    if (!typed.startsWith('-') || typed === '-') {
      if (words.length === wordsMax(command) || !isPlain(typed)) return undefined;
      words.push(typed);
      continue;
    }
    const [, name = '', given] = /^--([a-z][a-z-]*)(?:=(.*))?$/s.exec(typed) ?? [];
    const option = options.get(name);
    if (option === undefined) return undefined;
    if (option.takes === undefined) {
      if (given !== undefined || texts.has(name)) return undefined;
      texts.set(name, ['']);
      continue;
    }
    const text = given ?? argv[(at += 1)] ?? '';
    if (!isPlain(text) || text.startsWith('-')) return undefined;
    texts.set(name, [...(texts.get(name) ?? []), text]);
  }
  const [word, second, ...others] = words;
  if (word === undefined && command.word?.required === true) return undefined;
  return { word, second, texts, ...(others.length > 0 && { others }) };
}

export function wordsMax({ word, second }: Command): number {
  return second?.many === true ? Infinity : [word, second].filter((each) => each !== undefined).length;
}

// yargs takes quotes off, takes "true" behind a flag for its value, and an empty text for a missing one.
function isPlain(text: string): boolean {
  return text !== '' && !/^['"]|['"]$|^(?:true|false)$/i.test(text);
}
