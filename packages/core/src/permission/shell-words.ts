// Words of a shell command, as far as they are certain before it runs.
//
// A word is literal, or a glob (file names, of which the beginning is known), or a variable (anything).
// What runs a command, or could turn into one, is no word here but a problem. Where the parser and a
// look at the text itself disagree about what is quoted, that is a problem too.

import type { ArithmeticExpression, ParameterExpansionPart, Word, WordPart } from 'unbash';

const BRACE_WORDS_MAX = 64;

export type ShellWord = {
  readonly text: string; // without quotes; where the shell puts something in, its source
  readonly kind: 'literal' | 'glob' | 'variable';
  readonly prefix: string; // what it is certain to begin with
  readonly bound: boolean; // every variable in it got its value within the command
  readonly single: boolean; // it is one word, whatever is put in
};

/** What is known of variables: their value in this pass of a loop, or only that the command sets them. */
export type Scope = { readonly values: ReadonlyMap<string, ShellWord>; readonly bound: ReadonlySet<string> };

export type Expanded = { readonly words: readonly ShellWord[] } | { readonly problem: string };

export function literal(text: string): ShellWord {
  return { text, kind: 'literal', prefix: text, bound: true, single: true };
}

export function unknownWord(text: string): ShellWord {
  return { text, kind: 'variable', prefix: '', bound: true, single: false };
}

const EMPTY = literal('');

/** One word, or several where braces say so. */
export function expandWord(word: Word, scope: Scope): Expanded {
  const doubt = doubtAbout(word);
  if (doubt !== undefined) return { problem: doubt };
  let words: readonly ShellWord[] = [EMPTY];
  for (const part of word.parts ?? [{ type: 'Literal', value: word.value, text: word.text } as WordPart]) {
    const next = expandPart(part, scope, 'bare');
    if ('problem' in next) return next;
    if (words.length * next.words.length > BRACE_WORDS_MAX) return { problem: 'braces make too many words' };
    words = words.flatMap((before) => next.words.map((after) => joined(before, after)));
  }
  return { words };
}

/** The text of a word that holds nothing to be expanded. */
export function literalText(word: Word): string | undefined {
  const expanded = expandWord(word, { values: new Map(), bound: new Set() });
  if ('problem' in expanded || expanded.words.length !== 1) return undefined;
  const [only] = expanded.words;
  return only?.kind === 'literal' ? only.text : undefined;
}

function joined(before: ShellWord, after: ShellWord): ShellWord {
  // A variable may be empty, and then what follows it would begin the word: "$x/etc" is /etc.
  const isRootless = before.kind !== 'variable' || before.prefix !== '' || !after.text.startsWith('/');
  return {
    text: before.text + after.text,
    kind: before.kind === 'variable' || after.kind === 'literal' ? before.kind : after.kind,
    prefix: before.kind === 'literal' ? before.text + after.prefix : before.prefix,
    bound: before.bound && after.bound && isRootless,
    single: before.single && after.single,
  };
}

function expandPart(part: WordPart, scope: Scope, where: 'bare' | 'quoted'): Expanded {
  switch (part.type) {
    case 'Literal':
      return { words: [literal(part.value)] };
    case 'SingleQuoted':
      return { words: [literal(part.value)] };
    case 'AnsiCQuoted':
      // The rarer escapes are read differently by different shells.
      return /\\[^ntr\\'"]/.test(part.text)
        ? { problem: `${shortened(part.text)} is not understood` }
        : { words: [literal(part.value)] };
    case 'DoubleQuoted': {
      let whole = EMPTY;
      for (const child of part.parts) {
        const next = expandPart(child, scope, 'quoted');
        if ('problem' in next) return next;
        whole = joined(whole, next.words[0] ?? EMPTY);
      }
      return { words: [whole] };
    }
    case 'Glob':
      if (part.parts?.every(({ type }) => type === 'Literal') === false)
        return { problem: `${shortened(part.text)} is not understood` };
      return { words: [{ ...unknownWord(part.text), kind: 'glob' }] };
    case 'SimpleExpansion':
      return { words: [variable(part.text.slice(1), part.text, scope, where)] };
    case 'ParameterExpansion':
      return expandParameter(part, scope, where);
    case 'ArithmeticExpansion':
      return isPlainArithmetic(part.expression)
        ? { words: [unknownWord(part.text)] }
        : { problem: `${part.text} computes with more than numbers` };
    case 'BraceExpansion':
      return expandBraces(part.text);
    case 'CommandExpansion':
      return { problem: `${shortened(part.text)} runs a command inside another` };
    case 'ProcessSubstitution':
      return { problem: `${shortened(part.text)} runs a command as a file` };
    case 'LocaleString':
    case 'ExtendedGlob':
      return { problem: `${shortened(part.text)} is not understood` };
  }
}

// The shell sets these to a number, always.
const NUMBERS = new Set(['?', '#', '$']);

function variable(name: string, text: string, scope: Scope, where: 'bare' | 'quoted'): ShellWord {
  if (NUMBERS.has(name)) return literal('0');
  if (name === 'PWD' && where === 'quoted') return { ...literal('.'), kind: 'glob' };
  const value = scope.values.get(name);
  const single = where === 'quoted' && !/^[@*]$/.test(name);
  const unknown = { ...unknownWord(text), bound: isBound(name, scope), single };
  if (value === undefined) return unknown;
  if (where === 'quoted') return { ...value, single: true };
  // Without quotes it is split at spaces and its wildcards are expanded.
  return value.kind === 'literal' && /^[^\s*?[\]\\]+$/.test(value.text) ? value : unknown;
}

function isBound(name: string, scope: Scope): boolean {
  return scope.values.get(name)?.bound ?? scope.bound.has(name);
}

function expandParameter(part: ParameterExpansionPart, scope: Scope, where: 'bare' | 'quoted'): Expanded {
  const { parameter, prefix, index, operation, text } = part;
  if (index !== undefined || prefix === '!') return { problem: `${text} is not understood` };
  if (prefix === '#') return { words: [literal('0')] };
  switch (operation?.type) {
    case undefined:
      return { words: [variable(parameter, text, scope, where)] };
    case 'Remove':
    case 'CaseModification':
      return operation.operand === undefined || literalPattern(operation.operand)
        ? { words: [{ ...unknownWord(text), bound: isBound(parameter, scope) }] }
        : { problem: `${shortened(text)} is not understood` };
    case 'Default':
      return /^:?-$/.test(operation.operator) && literalText(operation.operand) !== undefined
        ? { words: [{ ...unknownWord(text), bound: false }] }
        : { problem: `${shortened(text)} is not understood` };
    case 'Replace':
      return literalPattern(operation.pattern) && literalText(operation.replacement) !== undefined
        ? { words: [{ ...unknownWord(text), bound: false }] }
        : { problem: `${shortened(text)} is not understood` };
    case 'Slice':
    case 'Transform':
    case 'Names':
    case 'Unknown':
      return { problem: `${shortened(text)} is not understood` };
  }
}

function literalPattern(word: Word): boolean {
  const expanded = expandWord(word, { values: new Map(), bound: new Set() });
  return 'words' in expanded && expanded.words.every(({ kind }) => kind !== 'variable');
}

// Names have values, and values are computed again: a value a[$(…)] would run something.
export function isPlainArithmetic(expression: ArithmeticExpression | undefined): boolean {
  switch (expression?.type) {
    case undefined:
      return false;
    case 'ArithmeticWord':
      return /^\d{1,15}$/.test(expression.value);
    case 'ArithmeticGroup':
      return isPlainArithmetic(expression.expression);
    case 'ArithmeticUnary':
      return isPlainArithmetic(expression.operand);
    case 'ArithmeticBinary':
      return isPlainArithmetic(expression.left) && isPlainArithmetic(expression.right);
    case 'ArithmeticTernary':
      return [expression.test, expression.consequent, expression.alternate].every(isPlainArithmetic);
    case 'ArithmeticCommandExpansion':
      return false;
  }
}

function expandBraces(text: string): Expanded {
  const range = /^\{(0|[1-9]\d{0,3})\.\.(0|[1-9]\d{0,3})\}$/.exec(text);
  if (range !== null) {
    const [from, to] = [Number(range[1]), Number(range[2])];
    if (Math.abs(to - from) >= BRACE_WORDS_MAX) return { words: [unknownWord(text)] };
    const step = from <= to ? 1 : -1;
    return { words: Array.from({ length: Math.abs(to - from) + 1 }, (_, at) => literal(String(from + at * step))) };
  }
  // Nested braces, quotes and expansions within are seldom, and easily got wrong; an empty word would vanish.
  if (!/^\{[\w./@%+-]+(,[\w./@%+-]+)+\}$/.test(text)) return { problem: `${shortened(text)} is not understood` };
  return { words: text.slice(1, -1).split(',').map(literal) };
}

// A second opinion on what the parser says, from the text alone.
function doubtAbout(word: Word): string | undefined {
  const { text } = word;
  if (/^[\w./:=@%+,-]+$/.test(text)) return undefined;
  const bare = text
    .replace(/\\[^]/g, '')
    .replace(/\$?'[^']*'|"[^"]*"/g, '""')
    .replace(/\$\{[^}]*\}/g, '""');
  if (/^~|[=:]~/.test(bare)) return '~ leads out of the workspace';
  const parts = word.parts ?? [];
  const has = (...types: readonly WordPart['type'][]) => parts.some(({ type }) => types.includes(type));
  if (/\{.*(,|\.\.).*\}/s.test(bare) && !has('BraceExpansion')) return `${shortened(text)} is not understood`;
  if (/[*?]|\[.*\]/s.test(bare) && !has('Glob', 'BraceExpansion', 'ArithmeticExpansion', 'SimpleExpansion')) {
    return `${shortened(text)} is not understood`;
  }
  if (parts.length === 0 && /[`"'<>()]|\$[\w{(@*#?!$'"-]/.test(bare)) return `${shortened(text)} is not understood`;
  return undefined;
}

function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 40 ? `${line.slice(0, 39)}…` : line;
}
