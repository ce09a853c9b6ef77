// Whether one simple command may run unasked: it reads, within the workspace, and starts nothing.

import { objectionToAwk } from './programs/awk.ts';
import { objectionToGit } from './git-commands.ts';
import { objectionToSed } from './programs/sed.ts';
import { assignments, commands, type CommandSpec, versions } from './shell-commands.ts';
import type { ShellRedirect, SimpleCommand } from './shell-grammar.ts';
import { type Arguments, objectionToPath, type Place, readArguments } from './shell-options.ts';
import { literal, type ShellWord, unknownWord } from './shell-words.ts';

const NESTED_MAX = 3;

/** Why a command should be asked about; undefined where it is harmless. */
export function objectionTo(command: SimpleCommand, place: Place): string | undefined {
  const surroundings = objectionToSurroundings(command, place);
  if (surroundings !== undefined) return surroundings;
  if (command.name !== '') return objectionToWords(command.words, place, 0);
  return command.assignments.length === 0 ? undefined : `it sets ${command.assignments[0]?.name}`;
}

/** What stands round the words: variables set for the command, and where its input and output go. */
export function objectionToSurroundings(
  { assignments: set, redirects }: SimpleCommand,
  place: Place,
): string | undefined {
  for (const { name, value } of set) {
    const allowed = Object.hasOwn(assignments, name) ? assignments[name] : undefined;
    const isPlain = value.kind === 'literal' && /^(?:\w[\w.+-]*(?:\/\w[\w.+-]*)*)?$/.test(value.text);
    if (allowed === undefined || !(allowed === 'plain' ? isPlain : allowed.includes(value.text))) {
      return `it sets ${name}, which may change what a command does`;
    }
  }
  for (const redirect of redirects) {
    const objection = objectionToRedirect(redirect, place);
    if (objection !== undefined) return objection;
  }
  return undefined;
}

function objectionToRedirect({ operator, target }: ShellRedirect, place: Place): string | undefined {
  switch (operator) {
    case '<<':
    case '<<-':
    case '<<<':
      return undefined;
    case '<':
      // A variable might hold /dev/tcp/…, which the shell takes for a connection.
      if (target === undefined || target.kind === 'variable') return `input comes from ${target?.text ?? 'somewhere'}`;
      return objectionToPath(target, place);
    case '<&':
    case '>&':
      if (target?.kind === 'literal' && /^(?:\d{1,2}-?|-|\/dev\/null)$/.test(target.text)) return undefined;
      return `it writes to ${target?.text ?? 'a file'}`;
    case '>':
    case '>>':
    case '>|':
    case '&>':
    case '&>>':
      return target?.kind === 'literal' && target.text === '/dev/null'
        ? undefined
        : `it writes to ${target?.text ?? 'a file'}`;
    default:
      return `${operator} opens a file for writing`;
  }
}

type Special = (words: readonly ShellWord[], place: Place, depth: number) => string | undefined;

function objectionToWords(words: readonly ShellWord[], place: Place, depth: number): string | undefined {
  const [first, ...rest] = words;
  if (first?.kind !== 'literal') return 'what runs is computed';
  const name = first.text;
  if (depth > NESTED_MAX) return 'commands are nested too deeply';
  const special = Object.hasOwn(specials, name) ? specials[name] : undefined;
  if (special !== undefined) return special(rest, place, depth);
  if (Object.hasOwn(versions, name)) {
    const isVersion = rest.length === 1 && rest[0]?.kind === 'literal' && versions[name]?.includes(rest[0].text);
    return isVersion === true ? undefined : `${name} may run anything`;
  }
  const spec = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (spec === undefined) return `${JSON.stringify(name)} is not on the list of harmless commands`;
  const given = readArguments(spec.options ?? '', rest, spec.loose === true);
  if (typeof given === 'string') return `${name}: ${given}`;
  const objection = objectionToArguments(spec, given, place);
  return objection === undefined ? undefined : `${name}: ${objection}`;
}

function objectionToArguments(spec: CommandSpec, given: Arguments, place: Place): string | undefined {
  if (spec.needs !== undefined && !spec.needs.some((option) => given.given.has(option)))
    return 'it may do more than list';
  for (const { value, isPath } of given.values) {
    const objection = isPath ? objectionToPath(value, place) : undefined;
    if (objection !== undefined) return objection;
    // To tar it would be a file on another machine.
    if (isPath && value.text.includes(':')) return `${value.text} may name another machine`;
  }
  const { operands } = given;
  switch (spec.operands) {
    case 'text':
      return undefined;
    case 'none':
      return operands.length === 0 ? undefined : 'it takes no arguments';
    case 'one':
      // A second one would be written to.
      if (operands.length > 1 || operands.some(({ kind }) => kind !== 'literal'))
        return 'it may write to its second argument';
      return firstObjection(operands, place);
    case 'paths':
      return firstObjection(operands, place);
    case 'pattern': {
      const isGiven = spec.instead?.some((option) => given.given.has(option)) === true;
      return firstObjection(isGiven ? operands : operands.slice(1), place);
    }
  }
}

function firstObjection(paths: readonly ShellWord[], place: Place): string | undefined {
  for (const path of paths) {
    const objection = objectionToPath(path, place);
    if (objection !== undefined) return objection;
  }
  return undefined;
}

const specials: Readonly<Record<string, Special>> = {
  git: objectionToGit,
  awk: awkLike,
  gawk: awkLike,
  mawk: awkLike,
  sed: sedLike,
  cd: (words, place) => {
    const [target, ...more] = words;
    if (target?.kind !== 'literal' || more.length > 0 || target.text.startsWith('-'))
      return 'cd: where it leads is not clear';
    return firstObjection([target], place);
  },
  test: testLike,
  '[': (words, place) => testLike(words.slice(0, -1), place),
  printf: (words) => {
    const [format] = words[0]?.text === '--' ? words.slice(1) : words;
    if (format?.kind !== 'literal' || /^-|%[-+ #0'*.\d]*[hlLjztq]*n/.test(format.text))
      return 'printf: it may set a variable';
    return undefined;
  },
  date: (words, place) => {
    const given = readArguments(
      '-uRI d= r: date= reference: utc universal iso-8601? rfc-3339= rfc-email',
      words,
      false,
    );
    if (typeof given === 'string') return `date: ${given}`;
    if (given.operands.some(({ prefix }) => !prefix.startsWith('+'))) return 'date: it may set the clock';
    return firstObjection(
      given.values.filter(({ isPath }) => isPath).map(({ value }) => value),
      place,
    );
  },
  read: (words) => {
    const given = readArguments('-rs d= n= N= t= p=', words, false);
    if (typeof given === 'string') return `read: ${given}`;
    const isPlain = given.operands.every(({ kind, text }) => kind === 'literal' && /^[a-z_][a-z0-9_]*$/.test(text));
    return isPlain ? undefined : 'read: it sets a variable that means something';
  },
  set: (words) => {
    const isPlain = /^(?:[-+][eux]*o? ?(?:pipefail|errexit|nounset|xtrace)?(?: |$))+$/.test(
      words.map(({ text }) => text).join(' '),
    );
    return isPlain && words.every(({ kind }) => kind === 'literal') ? undefined : 'set: it changes the shell';
  },
  command: (words, place, depth) => {
    if (words[0]?.text === '-v' || words[0]?.text === '-V') return undefined;
    // Where a cd leads is followed only if it is written as one.
    if (words[0]?.text === 'cd') return 'command: it changes the folder';
    return words[0]?.prefix.startsWith('-') === true ? 'command: an option' : objectionToWords(words, place, depth + 1);
  },
  timeout: (words, place, depth) => {
    const [duration, ...rest] = words;
    if (duration?.kind !== 'literal' || !/^\d+(?:\.\d+)?[smh]?$/.test(duration.text)) return 'timeout: an option';
    return objectionToWords(rest, place, depth + 1);
  },
  xargs: xargsLike,
  find: findLike,
};

function awkLike(words: readonly ShellWord[], place: Place): string | undefined {
  const given = readArguments('F= v=', words, false);
  if (typeof given === 'string') return `awk: ${given}`;
  const [program, ...paths] = given.operands;
  if (program?.kind !== 'literal') return 'awk: the program is computed';
  return objectionToAwk(program.text) ?? firstObjection(paths, place);
}

function sedLike(words: readonly ShellWord[], place: Place): string | undefined {
  const given = readArguments('-nErsuz e= quiet silent regexp-extended expression= null-data unbuffered', words, false);
  if (typeof given === 'string') return `sed: ${given}`;
  const expressions = given.values.map(({ value }) => value);
  const scripts = expressions.length > 0 ? expressions : given.operands.slice(0, 1);
  if (scripts.length === 0 || scripts.some(({ kind }) => kind !== 'literal')) return 'sed: the script is computed';
  const objection = scripts.map(({ text }) => objectionToSed(text)).find((each) => each !== undefined);
  return objection ?? firstObjection(expressions.length > 0 ? given.operands : given.operands.slice(1), place);
}

// Whether a[…] is set is found out by computing what stands between the brackets.
const TEST_UNARY = /^-[abcdefghknprstuwxzGLNOS]$/;
const TEST_BINARY = /^(?:=|==|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/;

function testLike(words: readonly ShellWord[], place: Place): string | undefined {
  const [first, second, third] = words[0]?.text === '!' ? words.slice(1) : words;
  const count = words[0]?.text === '!' ? words.length - 1 : words.length;
  const isSure = words.every(({ single }) => single);
  const isKnown = (word: ShellWord | undefined, shape: RegExp) => word?.kind === 'literal' && shape.test(word.text);
  if (isSure && count === 1) return undefined;
  if (isSure && count === 2 && isKnown(first, TEST_UNARY) && second !== undefined) {
    return /^-[nz]$/.test(first?.text ?? '') ? undefined : objectionToPath({ ...second, bound: true }, place);
  }
  if (isSure && count === 3 && isKnown(second, TEST_BINARY) && third !== undefined) return undefined;
  return 'test: the condition is not understood';
}

const XARGS_FLAGS =
  /^-(?:[0rtx]+|[nLPs]\d+|-null|-no-run-if-empty|-verbose|-exit|(?:-max-args|-max-procs|-max-lines)=\d+)$/;

function xargsLike(words: readonly ShellWord[], place: Place, depth: number): string | undefined {
  const rest = [...words];
  let replaced: string | undefined;
  while (rest[0]?.prefix.startsWith('-') === true) {
    const option = rest.shift();
    if (option?.kind !== 'literal') return 'xargs: an option is computed';
    if (/^-[nLPs]$/.test(option.text) && /^\d+$/.test(rest[0]?.text ?? '')) rest.shift();
    else if (option.text === '-d' && rest[0]?.kind === 'literal') rest.shift();
    else if (option.text === '-I' && rest[0]?.kind === 'literal') replaced = rest.shift()?.text;
    else if (/^-I./.test(option.text)) replaced = option.text.slice(2);
    else if (!XARGS_FLAGS.test(option.text) && !/^-d./.test(option.text))
      return `xargs: the option ${option.text} is not known to be harmless`;
  }
  if (rest.length === 0) return undefined;
  const given = rest.map((word) => (replaced === undefined ? word : filledIn(word, replaced)));
  return objectionToWords(
    replaced === undefined ? [...given, unknownWord('what xargs adds')] : given,
    place,
    depth + 1,
  );
}

function filledIn(word: ShellWord, mark: string): ShellWord {
  const at = word.text.indexOf(mark);
  if (at === -1 || mark === '') return word;
  return { ...word, kind: 'variable', prefix: word.prefix.slice(0, at) };
}

const FIND_ALONE = new Set(
  '! ( ) , -a -and -d -daystart -depth -empty -executable -false -ignore_readdir_race -ls -mount -nogroup -noleaf -not -nouser -o -or -print -print0 -prune -quit -readable -true -writable -xdev'.split(
    ' ',
  ),
);
const FIND_WITH_TEXT = new Set(
  '-amin -atime -cmin -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -links -lname -maxdepth -mindepth -mmin -mtime -name -newermt -path -perm -printf -regex -regextype -size -type -uid -used -user -wholename -xtype'.split(
    ' ',
  ),
);
const FIND_WITH_PATH = new Set(['-newer', '-anewer', '-cnewer', '-samefile']);

function findLike(words: readonly ShellWord[], place: Place, depth: number): string | undefined {
  const rest = [...words];
  while (rest[0]?.text === '-P' || rest[0]?.text === '-H') rest.shift();
  for (; rest[0] !== undefined && !/^[-!(,)]/.test(rest[0].text); rest.shift()) {
    if (rest[0].kind !== 'literal' && rest[0].prefix === '') return `find: ${rest[0].text} could turn into an option`;
    const objection = objectionToPath(rest[0], place);
    if (objection !== undefined) return `find: ${objection}`;
  }
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word.kind !== 'literal') return `find: ${word.text} could turn into something else`;
    if (FIND_ALONE.has(word.text)) continue;
    if (word.text === '-exec') {
      const objection = objectionToFindExec(rest, place, depth);
      if (objection !== undefined) return objection;
      continue;
    }
    if (!FIND_WITH_TEXT.has(word.text) && !FIND_WITH_PATH.has(word.text))
      return `find: ${word.text} is not known to be harmless`;
    const value = rest.shift();
    if (value?.kind !== 'literal') return `find: the value of ${word.text} is computed`;
    const objection = FIND_WITH_PATH.has(word.text) ? objectionToPath(value, place) : undefined;
    if (objection !== undefined) return `find: ${objection}`;
  }
  return undefined;
}

// Takes the command from the words. What is found begins as the folder it was looked for in, so it is no option.
function objectionToFindExec(rest: ShellWord[], place: Place, depth: number): string | undefined {
  const end = rest.findIndex(({ kind, text }) => kind === 'literal' && (text === ';' || text === '+'));
  if (end === -1) return 'find: the end of -exec is missing';
  const words = rest.splice(0, end + 1).slice(0, -1);
  const filled = words.map((word, at): ShellWord => {
    if (at === 0 || !word.text.includes('{}')) return word;
    return word.text === '{}' ? { ...literal('./found'), kind: 'glob', prefix: './' } : filledIn(word, '{}');
  });
  return words[0]?.text.includes('{}') === true
    ? 'find: it runs what it finds'
    : objectionToWords(filled, place, depth + 1);
}
