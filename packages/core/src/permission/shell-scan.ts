// Every command that a shell command may run, however it is wrapped: what deny rules are held against.
//
// The whole tree is searched, with what stands in substitutions, functions and the strings that shells
// are given. Where something would run that can't be seen (a computed name, a program in another
// language, input to a shell), the scan says so: it is then up to the policy to refuse.

import type { Command, SyntaxNode } from 'unbash';
import { objectionToAwk } from './programs/awk.ts';
import { mayMatch, wildcard } from './rules.ts';
import { objectionToSed } from './programs/sed.ts';
import { assignments } from './shell-commands.ts';
import { INTERPRETERS, problemOfText } from './shell-grammar.ts';
import type { Parser } from './shell-parser.ts';
import { literalText } from './shell-words.ts';

const STRINGS_DEEP_MAX = 6;
const CANDIDATES_MAX = 5_000;

/** The words of a command; undefined where one is computed. */
type Candidate = readonly (string | undefined)[];

export type Scan = {
  readonly candidates: readonly Candidate[];
  /** What runs unseen, if anything does. */
  readonly unseen: string | undefined;
  /** Every word that stands there, also those of redirects. */
  readonly words: ReadonlySet<string>;
};

const WRAPPERS = new Set(
  `env command builtin exec time timeout gtimeout nice ionice chrt taskset nohup setsid stdbuf sudo doas su runuser chroot
   unshare nsenter xargs parallel watch script flock strace ltrace busybox toybox caffeinate systemd-run ssh npx pnpx bunx
   entr unbuffer proot fakeroot firejail bwrap setarch linux32 linux64 coproc`.split(/\s+/),
);
const SHELLS = new Set('sh bash dash zsh ksh ash fish busybox'.split(' '));
const REDEFINING = new Set('alias hash enable source . shopt bind complete'.split(' '));
const GIT_RUNNING = new Set('bisect submodule rebase filter-branch difftool mergetool for-each-repo'.split(' '));
const RUNNING_OPTION =
  /^--?(?:checkpoint-action|to-command|use-compress-program|compress-program|pre|pager|rsh|rsh-command|info-script|new-volume-script|rsync-path|hostname-bin)\b/;
const RUNNING_VARIABLE =
  /^(?:PATH|IFS|ENV|CDPATH|PAGER|MANPAGER|EDITOR|VISUAL|BROWSER|PS4|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|BASH_\w+|LD_\w+|DYLD_\w+|GIT_\w+|LESS\w*|NODE_OPTIONS|PYTHON\w*|PERL\w*|RUBY\w*|\w+_OPTIONS)$/;

export function scanCommand(source: string, parser: Parser): Scan {
  const scanner = new Scanner(parser);
  scanner.text(source, 0);
  return { candidates: scanner.candidates, unseen: scanner.unseen, words: scanner.words };
}

/** Does a pattern hold for one of the commands? `maybe` where that depends on what is computed. */
export function findMatch(pattern: string, { candidates }: Scan): 'yes' | 'maybe' | 'no' {
  const wanted = pattern.toLowerCase();
  // Who denies rm means rm with arguments, too.
  const patterns = wanted.includes('*') ? [wanted] : [wanted, `${wanted} *`];
  let found: 'yes' | 'maybe' | 'no' = 'no';
  for (const candidate of candidates) {
    const end = candidate.indexOf(undefined);
    const known = (end === -1 ? candidate : candidate.slice(0, end)).join(' ').toLowerCase();
    for (const each of patterns) {
      if (end === -1 ? wildcard(each, known) : each.endsWith('*') && wildcard(each, `${known} `)) return 'yes';
      if (end !== -1 && mayMatch(each, `${known} `)) found = 'maybe';
    }
  }
  return found;
}

class Scanner {
  readonly candidates: Candidate[] = [];
  readonly words = new Set<string>();
  unseen: string | undefined;
  readonly #parser: Parser;

  constructor(parser: Parser) {
    this.#parser = parser;
  }

  text(source: string, depth: number): void {
    const problem = problemOfText(source);
    if (problem !== undefined) return this.#miss(problem);
    if (depth > STRINGS_DEEP_MAX) return this.#miss('commands are nested too deeply');
    this.#visit(this.#parser.parse(source), depth);
  }

  #miss(what: string): void {
    this.unseen ??= what;
  }

  #visit(node: SyntaxNode, depth: number): void {
    if (node.type === 'Script' && (node.errors?.length ?? 0) > 0) this.#miss('it does not parse');
    if (node.type === 'Word') {
      const text = literalText(node);
      if (text !== undefined) this.words.add(text);
    }
    if (node.type === 'Assignment')
      this.#assignment(node.name, node.value.type === 'Word' ? literalText(node.value) : undefined);
    if (node.type === 'Command') this.#command(node, depth);
    // A name that is then used as a variable's subscript is computed, and may hold a substitution.
    if (node.type === 'ArithmeticWord' && node.value.includes('[')) this.#miss('it computes with a subscript');
    this.#parser.forEachChild(node, (child) => this.#visit(child, depth));
  }

  #assignment(name: string, value: string | undefined): void {
    if (!RUNNING_VARIABLE.test(name)) return;
    const harmless = Object.hasOwn(assignments, name) ? assignments[name] : undefined;
    if (value === undefined || (harmless !== 'plain' && harmless?.includes(value) !== true)) {
      this.#miss(`it sets ${name}, which may change what runs`);
    }
  }

  #command({ name, args }: Command, depth: number): void {
    if (name === undefined) return;
    const words = [name, ...args].map((word) => (word.type === 'Word' ? literalText(word) : word.text));
    this.#run(words, depth);
  }

  #run(words: Candidate, depth: number): void {
    const [name, ...rest] = words;
    if (name === undefined) return this.#miss('the name of a command is computed');
    const base = this.#add(words);
    if (WRAPPERS.has(base)) this.#wrapped(base, rest, depth);
    if (SHELLS.has(base)) this.#shell(base, rest, depth);
    else if (INTERPRETERS.has(base)) this.#interpreter(base, rest);
    if (REDEFINING.has(base)) this.#miss(`${base} may change what runs`);
    if (base === 'eval' || base === 'trap') this.#string(base === 'eval' ? rest : rest.slice(0, 1), depth);
    if (base === 'find' || base === 'fd') this.#afterExec(rest, depth);
    if (base === 'git') this.#git(rest, depth);
    if (/^[gmn]?awk$/.test(base)) this.#program(rest, objectionToAwk);
    if (/^g?sed$/.test(base)) this.#program(rest, objectionToSed);
    if (rest.some((word) => word !== undefined && RUNNING_OPTION.test(word)))
      this.#miss(`an option of ${base} starts a program`);
  }

  // Returns the name without its folder.
  #add([name = '', ...rest]: Candidate): string {
    const base = name.slice(name.lastIndexOf('/') + 1);
    if (this.candidates.length >= CANDIDATES_MAX) this.#miss('there are too many commands');
    else {
      this.candidates.push([base, ...rest]);
      if (base !== name) this.candidates.push([name, ...rest]);
    }
    return base;
  }

  // Which of the words is the command depends on the options; so each may be, and a string may hold one.
  #wrapped(wrapper: string, words: Candidate, depth: number): void {
    const isFed = wrapper === 'xargs' || wrapper === 'parallel';
    let isCommandFound = false;
    for (const [at, given] of words.entries()) {
      const isFilledIn =
        isFed &&
        given !== undefined &&
        !given.startsWith('-') &&
        marksIn(words, at).some((mark) => given.includes(mark));
      const word = isFilledIn ? undefined : given;
      if (word === undefined) {
        if (!isCommandFound) this.#miss(`what ${wrapper} runs is computed`);
        continue;
      }
      const base = this.#add(words.slice(at));
      const isInner = WRAPPERS.has(base) || INTERPRETERS.has(base);
      isCommandFound ||= !isInner && !/^-|^\d|=|^\{/.test(word);
      if (isInner && SHELLS.has(base)) this.#shell(base, words.slice(at + 1), depth);
      else if (isInner && !WRAPPERS.has(base)) this.#interpreter(base, words.slice(at + 1));
      if (/[\s;&|$`<>(]/.test(word)) this.text(word, depth + 1);
    }
    if (isFed && words.length > 0 && !isCommandFound) this.#miss(`what ${wrapper} runs comes from its input`);
    if (
      isFed &&
      words.some((word) => word !== undefined && (SHELLS.has(word) || (WRAPPERS.has(word) && word !== wrapper)))
    ) {
      this.#miss(`what ${wrapper} runs comes from its input`);
    }
  }

  #shell(name: string, words: Candidate, depth: number): void {
    if (name === 'busybox') return;
    const at = words.findIndex((word) => word !== undefined && /^-[a-z]*c[a-z]*$/.test(word));
    if (at !== -1) {
      const program = words.slice(at + 1).find((word) => word === undefined || !/^[-+]/.test(word));
      return program === undefined ? this.#miss(`what ${name} runs is computed`) : this.text(program, depth + 1);
    }
    const script = words.find((word) => word === undefined || !/^[-+]/.test(word));
    if (script === undefined) this.#miss(`what ${name} runs is computed, or comes from its input`);
  }

  #interpreter(name: string, words: Candidate): void {
    const isFile =
      words[0] !== undefined && (!words[0].startsWith('-') || words[0] === '-m' || /^--?v/i.test(words[0]));
    if (!isFile) this.#miss(`${name} runs a program that is not looked into`);
  }

  #string(words: Candidate, depth: number): void {
    const known = words.filter((word) => word !== undefined);
    if (known.length < words.length) this.#miss('a string that is run is computed');
    else this.text(known.join(' '), depth + 1);
  }

  #afterExec(words: Candidate, depth: number): void {
    for (const [at, word] of words.entries()) {
      if (word !== undefined && /^(?:-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(word))
        this.#run(words.slice(at + 1), depth);
      if (word !== undefined && /^--exec(?:-batch)?=/.test(word))
        this.text(word.slice(word.indexOf('=') + 1), depth + 1);
    }
  }

  #git(words: Candidate, depth: number): void {
    let at = 0;
    for (; words[at]?.startsWith('-') === true; at++) {
      if (/^(?:-c|--config-env|--exec-path)/.test(words[at] ?? '')) this.#miss('a setting of git may start a program');
      if (/^(?:-c|-C|--git-dir|--work-tree|--namespace)$/.test(words[at] ?? '')) at++;
    }
    if (at > 0) this.candidates.push(['git', ...words.slice(at)]);
    const subcommand = words[at];
    if (subcommand !== undefined && GIT_RUNNING.has(subcommand)) this.#wrapped('git', words.slice(at + 1), depth);
  }

  #program(words: Candidate, objection: (program: string) => string | undefined): void {
    const isHarmless = words.some(
      (word) => word !== undefined && !word.startsWith('-') && objection(word) === undefined,
    );
    const isSuspicious = words.some(
      (word) => word === undefined || /^-[^nErsuzFve]|^--(?!quiet|expression|regexp)/.test(word),
    );
    if (!isHarmless || isSuspicious) this.#miss('a script may start a program');
  }
}

// What xargs fills in stands for anything: {} or, behind -I, what the user likes.
function marksIn(words: Candidate, before: number): readonly string[] {
  const own = words.slice(0, before).flatMap((word, at) => {
    if (word === '-I' || word === '-J') return at + 1 < before ? [words[at + 1]] : [];
    return [/^(?:-I|-i|--replace=)(.+)$/.exec(word ?? '')?.[1]];
  });
  return ['{}', ...own].filter((mark) => mark !== undefined);
}
