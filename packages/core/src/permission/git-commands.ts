// The git commands that only look, and with which options.
//
// Every one of them still starts what the repository's configuration says, so that has to be harmless
// as well: see git-repository.ts. Options that write (--output), start something (--open-files-in-pager,
// --ext-diff, --show-signature) or look elsewhere (--git-dir, --no-index) are not listed. How the lists
// are written: see shell-options.ts.

import { resolve } from 'node:path';
import { objectionToRepository } from './git-repository.ts';
import { type Arguments, objectionToPath, type Place, readArguments } from './shell-options.ts';
import type { ShellWord } from './shell-words.ts';

const DIFF = `-# -pusazbwRDWBrtcm U= S= G= l= I= M? C? X? patch no-patch raw unified= stat? numstat shortstat summary name-only name-status
  compact-summary dirstat? cumulative minimal patience histogram anchored= diff-algorithm= color? no-color color-moved?
  no-color-moved color-words? word-diff? word-diff-regex= no-renames find-renames? find-copies? find-copies-harder
  irreversible-delete diff-filter= pickaxe-all pickaxe-regex relative? no-relative text ignore-cr-at-eol ignore-space-at-eol
  ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= inter-hunk-context= function-context exit-code
  quiet no-ext-diff no-textconv ignore-submodules? src-prefix= dst-prefix= no-prefix default-prefix abbrev? full-index binary
  cached staged merge-base cc combined-all-paths diff-merges= no-diff-merges indent-heuristic no-indent-heuristic check
  ws-error-highlight= find-object= stat-width= stat-name-width= stat-count= stat-graph-width= patch-with-stat patch-with-raw
  line-prefix= root no-commit-id`;

const LOG = `${DIFF} -giEFP n= L= max-count= skip= since= after= until= before= author= committer= grep= grep-reflog= all-match invert-grep
  regexp-ignore-case extended-regexp basic-regexp fixed-strings perl-regexp merges no-merges min-parents= max-parents=
  first-parent not all branches? tags? remotes? glob= exclude= reflog walk-reflogs merge cherry cherry-mark cherry-pick
  left-right left-only right-only boundary simplify-merges simplify-by-decoration full-history dense sparse show-pulls
  ancestry-path? date-order author-date-order topo-order reverse no-walk? pretty? format= abbrev-commit no-abbrev-commit
  oneline encoding= notes? no-notes relative-date date= parents children graph no-graph show-linear-break? follow decorate?
  no-decorate clear-decorations decorate-refs= decorate-refs-exclude= source mailmap no-mailmap use-mailmap log-size
  expand-tabs? no-expand-tabs full-diff remove-empty count objects timestamp header no-show-signature`;

const LISTED = ['list', 'contains', 'no-contains', 'merged', 'no-merged', 'points-at'];
const REFS =
  'contains= no-contains= merged? no-merged? points-at= sort= format= color? no-color column? no-column ignore-case';

type Subcommand = {
  readonly options: string;
  readonly loose?: true;
  /** With operands it would do something else than list, unless one of these is given. */
  readonly operandsWith?: readonly string[];
  readonly operands?: { readonly min: number; readonly max: number };
  readonly isPatternFirst?: true;
};

const subcommands: Readonly<Record<string, Subcommand>> = {
  status: {
    options: `-sbz u? short branch porcelain? long untracked-files? ignored? show-stash ahead-behind no-ahead-behind renames
      no-renames find-renames? column? no-column ignore-submodules? null`,
  },
  diff: { options: DIFF },
  'diff-tree': { options: DIFF },
  'diff-index': { options: DIFF },
  'diff-files': { options: DIFF },
  log: { options: LOG },
  show: { options: LOG },
  whatchanged: { options: LOG },
  'rev-list': { options: LOG },
  'stash list': { options: LOG },
  'stash show': { options: LOG },
  reflog: { options: LOG },
  shortlog: {
    options: `-nsecw summary numbered email committer group= since= after= until= before= author= grep= no-merges merges
      first-parent all branches? tags? remotes? format= date=`,
  },
  blame: {
    options: `-lstfnewbcp M? C? L= ignore-rev= ignore-revs-file: since= date= abbrev= porcelain line-porcelain incremental
      show-stats show-name show-number show-email root first-parent reverse color-lines color-by-age`,
  },
  'rev-parse': { options: '', loose: true },
  'ls-files': {
    options: `-cdmostuivfzkr x= X: exclude= exclude-from: exclude-per-directory= exclude-standard error-unmatch cached deleted
      modified others stage unmerged killed ignored directory no-empty-directory eol full-name abbrev? with-tree= deduplicate
      sparse format= debug`,
  },
  'ls-tree': { options: '-drtlz name-only name-status object-only full-name full-tree abbrev? format= long' },
  'cat-file': { options: '-tspe', operands: { min: 1, max: 2 } },
  branch: {
    options: `-arvlqi list all remotes verbose show-current quiet abbrev? no-abbrev ${REFS}`,
    operandsWith: LISTED,
  },
  tag: { options: `-li n? list ${REFS}`, operandsWith: [...LISTED, 'l'] },
  'for-each-ref': { options: `count= ${REFS}` },
  'show-ref': { options: '-qdsh heads tags branches head dereference hash? abbrev? verify quiet' },
  'symbolic-ref': { options: '-q short quiet', operands: { min: 1, max: 1 } },
  'merge-base': { options: '-a all octopus independent is-ancestor fork-point' },
  describe: {
    options: `tags all always long dirty? broken? abbrev= candidates= exact-match match= exclude= contains first-parent`,
  },
  cherry: { options: '-v abbrev?' },
  'count-objects': { options: '-vH verbose human-readable' },
  remote: { options: '-v verbose', operands: { min: 0, max: 0 } },
  'remote show': { options: '', operands: { min: 0, max: 0 } },
  'remote get-url': { options: 'all push' },
  'worktree list': { options: '-vz verbose porcelain' },
  'config --get': { options: '', operands: { min: 1, max: 1 } },
  'config get': { options: '', operands: { min: 1, max: 1 } },
  'check-ignore': { options: '-vqnz verbose quiet non-matching no-index' },
  'check-attr': { options: '-az all cached' },
  version: { options: 'build-options', operands: { min: 0, max: 0 } },
  grep: {
    options: `-# -aiIwvhHEGFPnlLzcopWrq e= f: m= A= B= C= cached untracked exclude-standard no-exclude-standard and or not all-match
      ignore-case word-regexp invert-match extended-regexp basic-regexp fixed-strings perl-regexp line-number name-only
      files-with-matches files-without-match count color? no-color break heading show-function function-context context=
      after-context= before-context= max-depth= column only-matching quiet max-count= threads= text null recursive
      full-name`,
    isPatternFirst: true,
  },
};

const GLOBAL_FLAGS = new Set([
  '-P',
  '--no-pager',
  '--no-optional-locks',
  '--literal-pathspecs',
  '--icase-pathspecs',
  '--no-replace-objects',
]);
const GLOBAL_SETTING =
  /^(?:color\.[a-z.]+|core\.(?:quotepath|abbrev)|log\.(?:date|decorate)|diff\.(?:algorithm|renames|context))=[\w:-]*$|^core\.(?:pager=cat|fsmonitor=false)$/i;

/** Why a git command should be asked about; the words are those behind `git`. */
export function objectionToGit(words: readonly ShellWord[], place: Place): string | undefined {
  const rest = [...words];
  let { folders } = place;
  while (rest[0]?.kind === 'literal' && rest[0].text.startsWith('-')) {
    const option = rest.shift()?.text ?? '';
    if (option === '--version' && rest.length === 0) return undefined;
    if (GLOBAL_FLAGS.has(option)) continue;
    const value = rest.shift();
    if (value?.kind !== 'literal') return `git: ${option} is not known to be harmless`;
    if (option === '-C') {
      const objection = objectionToPath(value, { ...place, folders });
      if (objection !== undefined) return `git: ${objection}`;
      folders = folders.map((folder) => resolve(folder, value.text));
    } else if (option !== '-c' || !GLOBAL_SETTING.test(value.text))
      return `git: ${option} ${value.text} is not known to be harmless`;
  }
  const [first, second] = rest;
  if (first?.kind !== 'literal') return 'git: the subcommand is computed';
  const double = `${first.text} ${second?.kind === 'literal' ? second.text : ''}`;
  const name = Object.hasOwn(subcommands, double) ? double : first.text;
  const subcommand = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
  if (subcommand === undefined) return `git ${first.text} is not on the list of harmless commands`;
  const objection = objectionToUse(name, subcommand, rest.slice(name === double ? 2 : 1), { ...place, folders });
  return objection ?? folders.map(objectionToRepository).find((each) => each !== undefined);
}

function objectionToUse(
  name: string,
  subcommand: Subcommand,
  words: readonly ShellWord[],
  place: Place,
): string | undefined {
  const given = readArguments(subcommand.options, words, subcommand.loose === true);
  if (typeof given === 'string') return `git ${name}: ${given}`;
  const { operands, values } = given;
  const { min, max } = subcommand.operands ?? { min: 0, max: Number.POSITIVE_INFINITY };
  if (operands.length < min || operands.length > max) return `git ${name} may do more than look with these arguments`;
  const { operandsWith } = subcommand;
  if (operandsWith !== undefined && operands.length > 0 && !operandsWith.some((option) => given.given.has(option))) {
    return `git ${name} ${operands[0]?.text} may change something`;
  }
  if (name === 'reflog' && /^(?:expire|delete|drop|write|exists|list)$/.test(operands[0]?.text ?? ''))
    return 'git reflog may change something';
  if (values.some(({ name: option, value }) => /^(?:format|pretty)$/.test(option) && /%G|signature/.test(value.text))) {
    return `git ${name}: the format starts a check of signatures`;
  }
  return objectionToGitPaths(name, subcommand, given, place);
}

function objectionToGitPaths(
  name: string,
  { isPatternFirst }: Subcommand,
  given: Arguments,
  place: Place,
): string | undefined {
  const hasPattern = isPatternFirst === true && !given.given.has('e') && !given.given.has('f');
  const paths = [
    ...given.values.filter(({ isPath }) => isPath).map(({ value }) => value),
    ...(hasPattern ? given.operands.slice(1) : given.operands),
  ];
  const objection = paths.map((path) => objectionToPath(path, place)).find((each) => each !== undefined);
  return objection === undefined ? undefined : `git ${name}: ${objection}`;
}
