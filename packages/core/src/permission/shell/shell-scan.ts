// Shell scan: finds every command that a shell command may start, for comparison with deny and ask rules.
//
// The scan visits the whole syntax tree: substitutions, functions, and strings passed to shells. It reports the first
// part that it cannot analyse: a computed name, a program in another language, or input to a shell.

import type { Command, SyntaxNode } from 'unbash';
import { COMPARED_WORDS_MAX, type Words } from './command-pattern.ts';
import { literalShellText, parseShellCommand, type Parser } from './shell-parser.ts';

const STRINGS_DEEP_MAX = 6;
const COMMANDS_MAX = 1_000;

export type Scan = {
  readonly commands: readonly Words[];
  /** Why a part of the command cannot be analysed; undefined if all of it can. */
  readonly unseen: string | undefined;
  /** Every literal word, including words in redirects. */
  readonly words: ReadonlySet<string>;
};

const WRAPPERS = new Set(
  `env command builtin exec time timeout gtimeout nice ionice chrt taskset nohup setsid stdbuf sudo doas su runuser chroot
   unshare nsenter xargs parallel watch script flock strace ltrace busybox toybox caffeinate systemd-run ssh npx pnpx bunx
   entr unbuffer proot fakeroot firejail bwrap setarch linux32 linux64`.split(/\s+/),
);
const SHELLS = new Set('sh bash dash zsh ksh ash fish csh tcsh'.split(' '));
const INTERPRETERS = new Set(
  'python python2 python3 perl ruby node deno bun php lua Rscript osascript pwsh tclsh expect'.split(' '),
);
const REDEFINING = new Set('alias hash enable source . shopt bind complete'.split(' '));
const GIT_RUNNING = new Set('bisect submodule rebase filter-branch difftool mergetool for-each-repo'.split(' '));
const GIT_SETTING = /^(?:-c|--config-env|--exec-path)/;
const RUNNING_OPTION =
  /^--?(?:checkpoint-action|to-command|use-compress-program|compress-program|pre|pager|rsh|rsh-command|info-script|new-volume-script|rsync-path|hostname-bin)\b/;
const RUNNING_VARIABLE =
  /^(?:PATH|IFS|ENV|CDPATH|PAGER|MANPAGER|EDITOR|VISUAL|BROWSER|PS4|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|BASH_\w+|LD_\w+|DYLD_\w+|GIT_\w+|LESS\w*|NODE_OPTIONS|PYTHON\w*|PERL\w*|RUBY\w*|\w+_OPTIONS)$/;
const KNOWN_ASSIGNMENT = /^(?:(?:GIT_)?PAGER=cat|GIT_(?:OPTIONAL_LOCKS|TERMINAL_PROMPT)=0)$/;
const AWK_RUNS = /system|@|\|/;
const SED_OPTION = /^-(?:[nErsuz]+|i\S*|e)$/;
// Printing, deleting and a single plain substitution start no program.
const SED_SCRIPT =
  /^(?:(?:[\d,$!]|\/[\w ^$#}.*-]*\/)*[pdq=]|[\d,$]*s([/|#,])(?:(?!\1)[^\\\n[]|\\[^\n]|\[\^?[\w -]+\])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpI\d]*)$/;

export function scanShellCommand(source: string, parser: Parser): Scan {
  const scanner = new Scanner(parser);
  scanner.text(source, 0);
  return scanner;
}

class Scanner {
  readonly commands: Words[] = [];
  readonly words = new Set<string>();
  unseen: string | undefined;
  readonly #parser: Parser;

  constructor(parser: Parser) {
    this.#parser = parser;
  }

  text(source: string, depth: number): void {
    if (depth > STRINGS_DEEP_MAX) return this.#miss('commands are nested too deeply');
    const script = parseShellCommand(source, this.#parser);
    if (typeof script === 'string') this.#miss(script);
    else this.#visit(script, depth);
  }

  #miss(what: string): void {
    this.unseen ??= what;
  }

  #visit(node: SyntaxNode, depth: number): void {
    switch (node.type) {
      case 'Script': // a substitution
        if ((node.errors?.length ?? 0) > 0) this.#miss('it does not parse');
        break;
      case 'Word': {
        const text = literalShellText(node);
        if (text !== undefined) this.words.add(text);
        break;
      }
      case 'Assignment':
        this.#assignment(node.name, node.value.type === 'Word' ? literalShellText(node.value) : undefined);
        break;
      case 'ArithmeticWord':
        // The shell evaluates subscripts, and runs substitutions stored in their variables.
        if (node.value.includes('[')) this.#miss('it computes with a subscript');
        break;
      case 'Command':
        this.#command(node, depth);
    }
    this.#parser.forEachChild(node, (child) => this.#visit(child, depth));
  }

  #assignment(name: string, value: string | undefined): void {
    if (RUNNING_VARIABLE.test(name) && !KNOWN_ASSIGNMENT.test(`${name}=${value}`))
      this.#miss(`it sets ${name}, which may change what runs`);
  }

  #command({ name, args }: Command, depth: number): void {
    if (name === undefined) return;
    this.#run(
      [name, ...args].map((word) => (word.type === 'Word' ? literalShellText(word) : word.text)),
      depth,
    );
  }

  #run(words: Words, depth: number): void {
    const base = this.#add(words);
    if (base !== undefined) this.#inside(base, words.slice(1), depth);
  }

  /** Adds a command. Returns its name without the folder; undefined if there is nothing more to scan. */
  #add(words: Words): string | undefined {
    const [name, ...rest] = words.slice(0, 2 * COMPARED_WORDS_MAX);
    if (name === undefined) this.#miss('the name of a command is computed');
    if (this.commands.length >= COMMANDS_MAX) this.#miss('there are too many commands');
    if (name === undefined || this.commands.length >= COMMANDS_MAX) return undefined;
    const base = name.slice(name.lastIndexOf('/') + 1);
    for (const each of new Set([base, name])) this.commands.push([each, ...rest.slice(0, COMPARED_WORDS_MAX)]);
    for (const at of shellSubcommandsIn(rest)) this.commands.push([base, ...rest.slice(at, at + COMPARED_WORDS_MAX)]);
    return base;
  }

  #inside(base: string, words: Words, depth: number): void {
    if (WRAPPERS.has(base)) this.#wrapped(base, words, depth);
    if (SHELLS.has(base)) this.#shell(base, words, depth);
    if (INTERPRETERS.has(base)) this.#interpreter(base, words);
    if (REDEFINING.has(base)) this.#miss(`${base} may change what runs`);
    if (base === 'eval') this.#string(words, depth);
    if (base === 'trap') this.#string(words.slice(0, 1), depth);
    if (base === 'find' || base === 'fd') this.#afterExec(words, depth);
    if (base === 'git') this.#git(words, depth);
    if (/^[gmn]?awk$/.test(base)) this.#awk(words);
    if (/^g?sed$/.test(base)) this.#sed(words);
    if (words.some((word) => word !== undefined && RUNNING_OPTION.test(word)))
      this.#miss(`an option of ${base} starts a program`);
  }

  // Options decide which word is the command, so every word is tried. A word with operators may be a command line.
  #wrapped(wrapper: string, words: Words, depth: number): void {
    if (wrapper === 'xargs' || wrapper === 'parallel') this.#fed(wrapper, words);
    let isCommandFound = false;
    for (const [at, word] of words.entries()) {
      if (word === undefined) {
        if (!isCommandFound) this.#miss(`what ${wrapper} runs is computed`);
        continue;
      }
      const base = this.#add(words.slice(at));
      if (base === undefined) return;
      isCommandFound ||= !isShellRunner(base) && !/^-|^\d|=|^\{/.test(word);
      // This loop also reaches the words of an inner wrapper.
      if (!WRAPPERS.has(base)) this.#inside(base, words.slice(at + 1), depth);
      if (/[\s;&|$`<>(]/.test(word)) this.text(word, depth + 1);
    }
  }

  #fed(wrapper: string, words: Words): void {
    const option = words.findIndex((word) => word !== undefined && /^-[IJ]/.test(word));
    const attached = words[option]?.slice(2) ?? '';
    const mark = option === -1 ? '{}' : attached || words[option + 1];
    const behind = option === -1 ? 0 : option + (attached === '' ? 2 : 1);
    const command = words.slice(behind).find((word) => word === undefined || !/^-|^\d+$/.test(word));
    if (command === undefined || mark === undefined || command.includes(mark) || isShellRunner(command))
      this.#miss(`what ${wrapper} runs comes from its input`);
  }

  #shell(name: string, words: Words, depth: number): void {
    const option = words.findIndex((word) => word !== undefined && /^-[a-z]*c[a-z]*$/i.test(word));
    const operand = words.slice(option + 1).find((word) => word === undefined || !/^[-+]/.test(word));
    if (operand === undefined) this.#miss(`what ${name} runs is computed, or comes from its input`);
    else if (option !== -1) this.text(operand, depth + 1);
  }

  #interpreter(name: string, [first]: Words): void {
    const isFile = first !== undefined && (!first.startsWith('-') || first === '-m' || /^--?v/i.test(first));
    if (!isFile) this.#miss(`${name} runs a program that is not looked into`);
  }

  #string(words: Words, depth: number): void {
    if (words.includes(undefined)) this.#miss('a string that is run is computed');
    else this.text(words.join(' '), depth + 1);
  }

  #afterExec(words: Words, depth: number): void {
    for (const [at, word = ''] of words.entries()) {
      if (/^--exec(?:-batch)?=/.test(word)) this.text(word.slice(word.indexOf('=') + 1), depth + 1);
      if (!/^(?:-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(word)) continue;
      const base = this.#add(words.slice(at + 1));
      // This loop also reaches the -exec of an inner find.
      if (base !== undefined && base !== 'find' && base !== 'fd') this.#inside(base, words.slice(at + 2), depth);
    }
  }

  #git(words: Words, depth: number): void {
    const end = words.findIndex((word, at) => !isShellOption(word) && !isShellOption(words[at - 1]));
    if (words.slice(0, end === -1 ? words.length : end).some((word = '') => GIT_SETTING.test(word)))
      this.#miss('a setting of git may start a program');
    const running = [0, ...shellSubcommandsIn(words)].find((at) => GIT_RUNNING.has(words[at] ?? ''));
    if (running !== undefined) this.#wrapped('git', words.slice(running + 1), depth);
  }

  #awk(words: Words): void {
    const operand = words.find((word) => !isShellOption(word));
    const isRunning = words.some(
      (word) => word !== undefined && !/^-F|^.$/.test(word) && AWK_RUNS.test(word.replaceAll('||', '')),
    );
    if (operand === undefined || isRunning) this.#miss('an awk program may start a program');
  }

  #sed(words: Words): void {
    const operands = words.filter((word) => !isShellOption(word));
    const scripts = words.includes('-e') ? words.filter((_, at) => words[at - 1] === '-e') : operands.slice(0, 1);
    const isSeen =
      scripts.every((script) => script !== undefined && SED_SCRIPT.test(script)) &&
      words.every((word) => word === undefined || !isShellOption(word) || SED_OPTION.test(word));
    if (!isSeen) this.#miss('a sed script may start a program');
  }
}

function isShellRunner(word: string): boolean {
  const base = word.slice(word.lastIndexOf('/') + 1);
  return WRAPPERS.has(base) || SHELLS.has(base) || INTERPRETERS.has(base);
}

function isShellOption(word: string | undefined): boolean {
  return word?.startsWith('-') === true;
}

/** Positions where a subcommand may start after leading options: `git -C sub push` also counts as `git push`. */
function shellSubcommandsIn(words: Words): readonly number[] {
  const starts: number[] = [];
  if (!isShellOption(words[0])) return starts;
  for (let at = 1; at < Math.min(words.length, COMPARED_WORDS_MAX); at++) {
    if (isShellOption(words[at])) continue;
    starts.push(at);
    if (!isShellOption(words[at - 1])) break; // a word after an option may be its value; then the subcommand comes next
  }
  return starts;
}
