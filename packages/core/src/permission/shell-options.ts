// How the arguments of a harmless command are read: options from a list, then operands.
//
// An option that is not on the command's list makes it one to ask about; so abbreviated long options
// do, too. The list is a line of words:
//
//   -abc      flags of one letter, which may be clustered
//   n=  f:    a letter with a value, attached or next; `=` means text, `:` a path
//   name      a long flag
//   name=  name:   a long option with a value, text or path, behind `=` or next
//   name?     a long option whose value may be left out: text behind `=`
//   name==     a long option with two values, both text
//   n?        a letter whose value may be left out, attached if there is one
//   -#        a number with a dash, as in head -20

import { isInside, realPath } from './paths.ts';
import type { ShellWord } from './shell-words.ts';

/** Where a command runs: in the workspace, in one of these folders of it (several, since `cd` may fail). Links are resolved. */
export type Place = { readonly root: string; readonly folders: readonly string[] };

export type Arguments = {
  readonly operands: readonly ShellWord[];
  readonly given: ReadonlySet<string>; // the names of the options
  readonly values: readonly { readonly name: string; readonly value: ShellWord; readonly isPath: boolean }[];
};

type OptionKind = 'flag' | 'text' | 'path' | 'optional' | 'pair';
type OptionList = { readonly names: ReadonlyMap<string, OptionKind>; readonly numbers: boolean };

const lists = new Map<string, OptionList>();

/** The arguments (without the name), or what is wrong with them. `loose`: options not listed are welcome as well. */
export function readArguments(options: string, words: readonly ShellWord[], loose: boolean): Arguments | string {
  const list = listOf(options);
  const operands: ShellWord[] = [];
  const given = new Set<string>();
  const values: { name: string; value: ShellWord; isPath: boolean }[] = [];
  const queue = [...words];

  const take = (name: string, attached: ShellWord | undefined): string | undefined => {
    const kind = list.names.get(name);
    given.add(name);
    if (kind === undefined) return loose ? undefined : `the option ${dashed(name)} is not known to be harmless`;
    if (kind === 'flag') return attached === undefined ? undefined : `${dashed(name)} takes no value`;
    if (kind === 'optional' && attached === undefined) return undefined;
    const value = attached ?? queue.shift();
    if (value === undefined) return `${dashed(name)} lacks its value`;
    values.push({ name, value, isPath: kind === 'path' });
    if (kind === 'pair' && queue.shift() === undefined) return `${dashed(name)} lacks its second value`;
    return undefined;
  };

  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    if (word.text === '--' && word.kind === 'literal') {
      operands.push(...queue.splice(0));
      break;
    }
    if (word.kind !== 'literal' && (word.prefix === '' || word.prefix === '-')) {
      if (!loose) return `${word.text} could turn into an option`;
      operands.push(word);
      continue;
    }
    if (!word.prefix.startsWith('-') || word.text === '-') {
      operands.push(word);
      continue;
    }
    const problem = word.prefix.startsWith('--') ? long(word, take) : short(word, list, take);
    if (problem !== undefined) return problem;
  }
  return { operands, given, values };
}

type Take = (name: string, attached: ShellWord | undefined) => string | undefined;

function long(word: ShellWord, take: Take): string | undefined {
  const equals = word.prefix.indexOf('=');
  if (equals === -1 && word.kind !== 'literal') return `${word.text} could turn into another option`;
  if (equals === -1) return take(word.text.slice(2), undefined);
  return take(word.text.slice(2, equals), from(word, equals + 1));
}

function short(word: ShellWord, list: OptionList, take: Take): string | undefined {
  if (list.numbers && word.kind === 'literal' && /^-\d+$/.test(word.text)) return undefined;
  for (let at = 1; at < word.text.length; at++) {
    if (at >= word.prefix.length) return `${word.text} could turn into another option`;
    const name = word.text.charAt(at);
    const kind = list.names.get(name);
    const takesRest = kind === 'text' || kind === 'path' || kind === 'optional';
    const attached = takesRest && at + 1 < word.text.length ? from(word, at + 1) : undefined;
    const problem = take(name, attached);
    if (problem !== undefined) return problem;
    if (takesRest) break;
  }
  return undefined;
}

function from(word: ShellWord, at: number): ShellWord {
  return { ...word, text: word.text.slice(at), prefix: word.prefix.slice(at) };
}

function dashed(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
}

function listOf(options: string): OptionList {
  const known = lists.get(options);
  if (known !== undefined) return known;
  const names = new Map<string, OptionKind>();
  let numbers = false;
  for (const item of options.split(/\s+/).filter(Boolean)) {
    if (item === '-#') numbers = true;
    else if (item.startsWith('-')) for (const letter of item.slice(1)) names.set(letter, 'flag');
    else if (item.endsWith('==')) names.set(item.slice(0, -2), 'pair');
    else if (item.endsWith('=')) names.set(item.slice(0, -1), 'text');
    else if (item.endsWith(':')) names.set(item.slice(0, -1), 'path');
    else if (item.endsWith('?')) names.set(item.slice(0, -1), 'optional');
    else names.set(item, 'flag');
  }
  const list = { names, numbers };
  lists.set(options, list);
  return list;
}

/** Why a path may not be read without asking; undefined where it is certain to lie in the workspace. */
export function objectionToPath(word: ShellWord, place: Place): string | undefined {
  if (word.kind === 'variable') return word.bound ? undefined : `${word.text} may lead out of the workspace`;
  if (word.text === '/dev/null' || word.text === '-' || word.text === '') return undefined;
  // .* may be .., and then everything is reached.
  if (word.kind === 'glob' && /(^|\/)\.{1,2}[*?[]/.test(word.text)) return `${word.text} may lead out of the workspace`;
  const isOutside = place.folders.some((folder) => !isInside(place.root, realPath(folder, word.text)));
  return isOutside ? `${word.text} leads out of the workspace` : undefined;
}
