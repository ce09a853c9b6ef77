// A fast parser for plain command lines: known flags with their values, and a word or two.
//
// Importing yargs takes as long as everything else before the first request, and most command lines do not need it. For
// help, mistakes, quotes and anything unusual this parser returns undefined, and yargs decides. A test compares both on
// plain command lines.

import { listOptionNames, type Command, type Typed } from './command.ts';

export function parsePlainCommandLine(command: Command, argv: readonly string[]): Typed | undefined {
  const options = new Map(listOptionNames(command.options));
  const texts = new Map<string, readonly string[]>();
  const words: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const typed = argv[at] ?? '';
    if (!typed.startsWith('-') || typed === '-') {
      if (words.length === commandWordsMax(command) || !isPlainWord(typed)) return undefined;
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
    if (!isPlainWord(text) || text.startsWith('-')) return undefined;
    texts.set(name, [...(texts.get(name) ?? []), text]);
  }
  const [word, second, ...others] = words;
  if (word === undefined && command.word?.required === true) return undefined;
  return { word, second, texts, ...(others.length > 0 && { others }) };
}

export function commandWordsMax({ word, second }: Command): number {
  return second?.many === true ? Infinity : [word, second].filter((each) => each !== undefined).length;
}

// yargs strips quotes, takes "true" after a flag as its value, and an empty text as a missing one.
function isPlainWord(text: string): boolean {
  return text !== '' && !/^['"]|['"]$|^(?:true|false)$/i.test(text);
}
