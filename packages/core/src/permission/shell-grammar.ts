// What a shell command consists of: simple commands, each with its words, or why that can't be said.
//
// It is understood only if everything that could happen is seen: pipelines, lists, conditions, loops
// over words that stand there. What would be computed first (substitutions, expansions in the place of
// a command, functions, eval and its kin) is not, and neither is what the parser stumbled over. A loop
// is read once for each of its words, so that every command is judged with the words it will get.

import type {
  Command,
  CompoundList,
  ParsedScript,
  PipelineNode,
  AndOr,
  Redirection,
  SyntaxNode,
  Word,
  For,
  HereDoc,
  TestExpression,
} from 'unbash';
import { residueOf } from './shell-residue.ts';
import type { Parser } from './shell-parser.ts';
import { expandWord, isPlainArithmetic, literal, type Scope, type ShellWord, unknownWord } from './shell-words.ts';

const COMMAND_CHARS_MAX = 20_000;
const SIMPLE_COMMANDS_MAX = 512;
const LOOP_WORDS_MAX = 16;
const DEPTH_MAX = 24;

export type ShellRedirect = {
  readonly operator: string;
  readonly target?: ShellWord; // absent for a here-document
};

export type SimpleCommand = {
  readonly name: string; // '' where there are only redirects or assignments
  readonly words: readonly ShellWord[]; // the name first
  readonly assignments: readonly { readonly name: string; readonly value: ShellWord }[];
  readonly redirects: readonly ShellRedirect[];
};

export type Understanding =
  | { readonly understood: true; readonly commands: readonly SimpleCommand[] }
  | { readonly understood: false; readonly why: string };

/** Commands whose meaning lies in what they are given to run, or that change what a name means. */
const BEYOND = new Set(
  'eval source . exec trap coproc alias unalias hash enable builtin mapfile readarray bind complete shopt declare typeset local export readonly let unset'.split(
    ' ',
  ),
);

export const INTERPRETERS: ReadonlySet<string> = new Set(
  'sh bash dash zsh ksh ash fish csh tcsh python python2 python3 perl ruby node deno bun php lua Rscript osascript pwsh tclsh expect'.split(
    ' ',
  ),
);

export function understand(source: string, parser: Parser): Understanding {
  const unreadable = problemOfText(source);
  if (unreadable !== undefined) return { understood: false, why: unreadable };
  const script = parser.parse(source);
  const why = problemOfScript(script);
  if (why !== undefined) return { understood: false, why };
  const reader = new Reader();
  reader.list(script.commands, { values: new Map(), bound: new Set() }, 0);
  if (reader.why !== undefined) return { understood: false, why: reader.why };
  const stranger = strangerIn(script, parser);
  if (stranger !== undefined) return { understood: false, why: `${stranger} is not understood` };
  const residue = residueOf(source, script, parser);
  if (residue !== undefined)
    return { understood: false, why: `it does not parse: ${JSON.stringify(residue)} is unexpected` };
  return { understood: true, commands: reader.commands };
}

export function problemOfText(source: string): string | undefined {
  if (source.length > COMMAND_CHARS_MAX) return `it is longer than ${COMMAND_CHARS_MAX} characters`;
  // oxlint-disable-next-line no-control-regex -- exactly those are looked for
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(source)) return 'it contains control characters';
  return undefined;
}

function problemOfScript({ errors = [], commands }: ParsedScript): string | undefined {
  if (errors[0] !== undefined) return `it does not parse: ${errors[0].message} at position ${errors[0].pos + 1}`;
  return commands.length === 0 ? 'it is empty' : undefined;
}

// Whatever was looked at above, and wherever: none of these may be anywhere in the tree.
const STRANGERS: ReadonlySet<SyntaxNode['type']> = new Set([
  'CommandExpansion',
  'ProcessSubstitution',
  'ArithmeticCommandExpansion',
  'Function',
  'Coproc',
  'Select',
  'ArithmeticFor',
  'ExtendedGlob',
  'LocaleString',
  'Transform',
  'Names',
  'Unknown',
  'Slice',
  'ArrayValue',
]);

function strangerIn(node: SyntaxNode, parser: Parser): string | undefined {
  if (STRANGERS.has(node.type)) return node.type;
  let found: string | undefined;
  parser.forEachChild(node, (child) => {
    found ??= strangerIn(child, parser);
  });
  return found;
}

class Reader {
  readonly commands: SimpleCommand[] = [];
  why: string | undefined;
  readonly #bound = new Set<string>();

  list(statements: CompoundList['commands'], scope: Scope, depth: number): void {
    if (depth > DEPTH_MAX) this.#refuse('it is nested too deeply');
    for (const { command, background } of statements) {
      if (this.why !== undefined) return;
      if (background === true) this.#refuse('& leaves a command running in the background');
      this.#node(command, scope, depth + 1);
    }
  }

  #refuse(why: string): void {
    this.why ??= why;
  }

  #node(node: PipelineNode | AndOr, scope: Scope, depth: number): void {
    switch (node.type) {
      case 'Command':
        return this.#command(node, scope);
      case 'Pipeline':
      case 'AndOr':
        for (const command of node.commands) this.#node(command, scope, depth);
        return;
      case 'Subshell':
      case 'BraceGroup':
        return this.list(node.body.commands, scope, depth);
      case 'If':
        for (const { clause, then } of [node, ...node.elif]) {
          this.list(clause.commands, scope, depth);
          this.list(then.commands, scope, depth);
        }
        return this.list(node.else?.commands ?? [], scope, depth);
      case 'While':
        this.list(node.clause.commands, scope, depth);
        return this.list(node.body.commands, scope, depth);
      case 'For':
        return this.#loop(node, scope, depth);
      case 'Case':
        for (const word of [node.word, ...node.items.flatMap(({ pattern }) => pattern)]) this.#words([word], scope);
        for (const { body } of node.items) this.list(body.commands, scope, depth);
        return;
      case 'Redirected':
        this.#node(node.command, scope, depth);
        return this.#add({ name: '', words: [], assignments: [], redirects: this.#redirects(node.redirects, scope) });
      case 'TestCommand':
        return this.#test(node.expression, scope);
      case 'ArithmeticCommand':
        if (!isPlainArithmetic(node.expression)) this.#refuse(`((${node.body})) computes with more than numbers`);
        return;
      case 'Function':
        return this.#refuse('it defines a function');
      case 'Coproc':
        return this.#refuse('coproc leaves a command running in the background');
      case 'Select':
      case 'ArithmeticFor':
        return this.#refuse(`this kind of loop is not understood`);
    }
  }

  #command({ name, prefix, args, redirects }: Command, scope: Scope): void {
    const assignments = prefix
      .filter((each) => each.type === 'Assignment')
      .map(({ name: variable, value, index, append }) => {
        const isPlain = value.type === 'Word' && index === undefined && append !== true;
        if (!isPlain) this.#refuse(`the assignment to ${variable} is not understood`);
        const [first = literal('')] = isPlain ? this.#words([value], scope) : [];
        return { name: variable, value: first };
      });
    const called = name === undefined ? '' : this.#name(name);
    const words = args.flatMap((word) => {
      if (word.type === 'Word') return this.#words([word], scope);
      this.#refuse(`${called} sets a variable`);
      return [];
    });
    if (called === 'read') this.#read(words, scope);
    if (INTERPRETERS.has(called) && redirects.some(({ operator }) => operator.startsWith('<<'))) {
      this.#refuse(`${called} is given a program to run`);
    }
    this.#add({
      name: called,
      words: called === '' ? [] : [literal(called), ...words],
      assignments,
      redirects: this.#redirects(redirects, scope),
    });
  }

  #read(words: readonly ShellWord[], scope: Scope): void {
    for (const { text } of words) {
      if (scope.values.has(text)) this.#refuse(`read changes ${text}, which a loop sets`);
      this.#bound.add(text);
    }
  }

  // What is called must stand there: nothing in its place is computed or looked up.
  #name(word: Word): string {
    const [first, ...more] = this.#words([word], { values: new Map(), bound: new Set() });
    if (first?.kind !== 'literal' || more.length > 0 || first.text === '') {
      this.#refuse(`${JSON.stringify(word.text)} is computed, and stands in the place of a command`);
      return '';
    }
    if (word.parts?.some(({ type }) => type === 'SimpleExpansion' || type === 'ParameterExpansion') === true) {
      this.#refuse(`${JSON.stringify(word.text)} is a variable in the place of a command`);
    }
    if (BEYOND.has(first.text)) this.#refuse(`${first.text} changes what runs`);
    return first.text;
  }

  #words(words: readonly Word[], scope: Scope): readonly ShellWord[] {
    return words.flatMap((word) => {
      const expanded = expandWord(word, { values: scope.values, bound: new Set([...scope.bound, ...this.#bound]) });
      if ('words' in expanded) return expanded.words;
      this.#refuse(expanded.problem);
      return [];
    });
  }

  #redirects(redirects: readonly Redirection[], scope: Scope): readonly ShellRedirect[] {
    return redirects.map((redirect) => {
      if (redirect.descriptor?.type === 'FileDescriptorVariable') this.#refuse('it opens a file under a variable');
      if (redirect.type === 'HereDoc') {
        this.#hereDocument(redirect, scope);
        return { operator: redirect.operator };
      }
      if (redirect.target === undefined) {
        this.#refuse('a redirect leads nowhere');
        return { operator: redirect.operator };
      }
      const [target, ...more] = this.#words([redirect.target], scope);
      if (more.length > 0) this.#refuse('a redirect leads to several places');
      return { operator: redirect.operator, target: target ?? unknownWord('') };
    });
  }

  #hereDocument({ body, delimiter, closing }: HereDoc, scope: Scope): void {
    const isSure = closing !== undefined && delimiter !== undefined && /^(['"]?)\w+\1$/.test(delimiter.text);
    // A line that goes on could be joined to the delimiter, and what follows would be commands.
    const isPlain = delimiter?.quoted === true || !/\\\n/.test(body.text);
    if (!isSure || !isPlain) this.#refuse('a here-document is not understood');
    if (delimiter?.quoted === true) return;
    if (body.parts === undefined && /`|\$[\w({]/.test(body.text)) this.#refuse('a here-document is not understood');
    for (const part of body.parts ?? []) {
      if (part.type === 'Literal') continue;
      const { pos, end, text } = part;
      this.#words([{ type: 'Word', text, value: text, pos, end, parts: [part] }], scope);
    }
  }

  #loop({ name, wordlist, body }: For, scope: Scope, depth: number): void {
    const variable = name.text;
    if (!/^[a-z_][a-z0-9_]*$/.test(variable)) return this.#refuse(`a loop sets ${variable}`);
    if (wordlist === undefined) return this.#refuse('a loop over arguments that are not there');
    if (scope.values.has(variable)) return this.#refuse(`two loops set ${variable}`);
    const words = this.#words(wordlist, scope);
    const isKnown = words.length <= LOOP_WORDS_MAX && words.every(({ kind }) => kind !== 'variable');
    const passes = isKnown ? words : [{ ...unknownWord(`$${variable}`), bound: words.every(({ bound }) => bound) }];
    for (const value of passes) {
      if (this.why !== undefined) return;
      this.list(body.commands, { ...scope, values: new Map(scope.values).set(variable, value) }, depth);
    }
  }

  #test(expression: TestExpression, scope: Scope): void {
    switch (expression.type) {
      case 'TestLogical':
        for (const operand of expression.operands) this.#test(operand, scope);
        return;
      case 'TestNot':
        return this.#test(expression.operand, scope);
      case 'TestGroup':
        return this.#test(expression.expression, scope);
      case 'TestUnary':
        // Whether a[…] is set is found out by computing what stands between the brackets.
        if (!/^-[abcdefghknprstuwxzGLNOS]$/.test(expression.operator)) {
          return this.#refuse(`[[ ${expression.operator} ]] is not understood`);
        }
        this.#words([expression.operand], scope);
        return;
      case 'TestBinary': {
        const words = [expression.left, expression.right];
        const sides = this.#words(words, scope);
        if (expression.operator === '=~' && !/^[\w^$.*+|/-]*$/.test(expression.right.text)) {
          this.#refuse('[[ =~ ]] is not understood');
        }
        const isNumeric = /^-(eq|ne|lt|le|gt|ge)$/.test(expression.operator);
        if (isNumeric && !sides.every(({ kind, text }) => kind === 'literal' && /^-?\d+$/.test(text))) {
          this.#refuse(`[[ ${expression.operator} ]] computes with more than numbers`);
        }
      }
    }
  }

  #add(command: SimpleCommand): void {
    if (this.commands.length >= SIMPLE_COMMANDS_MAX) return this.#refuse('it holds too many commands');
    this.commands.push(command);
  }
}
