// Whether a repository's own configuration can make git start programs.
//
// Reading commands start what is configured: a file system monitor, external diffs, text conversions,
// filters (when a changed file is compared), signature checks, a transport for objects that are missing,
// a hook when the index is refreshed. Which drivers there are is known only to the configuration, so
// it is read, and every setting in it has to be one that starts nothing. What the user has configured
// for all repositories is the user's own choice, and not looked at.

import { readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';

const FOLDERS_UP_MAX = 64;
const CONFIG_CHARS_MAX = 200_000;

const HARMLESS = [
  'core.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf',
  '|longpaths|quotepath|abbrev|untrackedcache|preloadindex|fscache|commitgraph|multipackindex|sparsecheckout',
  '|sparsecheckoutcone|compression|bigfilethreshold|checkstat|trustctime|hidedotfiles|protectntfs|protecthfs',
  '|sharedrepository|hookspath|sshcommand|editor|commentchar|whitespace)',
  '~remote(..+)?.(url|fetch|push|pushurl|tagopt|prune|prunetags|gh-resolved|pushdefault|mirror)',
  '~(branch|user|author|committer|init|push|pull|fetch|rebase|color|advice|gc|maintenance|pack|http|url|credential|transfer',
  '|receive|protocol|commit|tag|rerere|gui|checkout|clone|worktree|safe)..+',
  '~merge.(ff|conflictstyle|renames|renamelimit|stat|tool)',
  '~log.(date|decorate|abbrevcommit|showroot|follow)',
  '~diff.(renames|renamelimit|algorithm|colormoved|mnemonicprefix|noprefix|context|indentheuristic|interhunkcontext|wordregex)',
  '~status.(short|branch|showuntrackedfiles|showstash|aheadbehind|relativepaths|renames)',
  '~submodule.(active|.+.(url|active|branch))',
  '~extensions.(objectformat|worktreeconfig|refstorage)',
  '~lfs.(repositoryformatversion|.+.(access|locksverify))',
];
const HARMLESS_SETTING = new RegExp(
  `^(?:${HARMLESS.join('').replaceAll('.', '\\.').replaceAll('\\.+', '.+').replaceAll('~', '|')})$`,
);

/** Why git may start something in this folder; undefined where it may not. */
export function objectionToRepository(folder: string): string | undefined {
  let at = resolve(folder);
  for (let up = 0; up < FOLDERS_UP_MAX; up++) {
    const found = lookAt(at);
    if (found.isRepository) return found.objection;
    if (dirname(at) === at) return undefined;
    at = dirname(at);
  }
  return 'git: the repository is not found';
}

type Look = { readonly isRepository: boolean; readonly objection?: string | undefined };

function lookAt(folder: string): Look {
  const marker = join(folder, '.git');
  const kind = kindOf(marker);
  if (kind === undefined) {
    // A folder that looks like a repository is one, whoever wrote its files.
    const isBare = kindOf(join(folder, 'HEAD')) !== undefined && kindOf(join(folder, 'objects')) !== undefined;
    return {
      isRepository: isBare,
      objection: `git: ${folder} is itself a repository, and its settings may start something`,
    };
  }
  return { isRepository: true, objection: objectionToKept(folder, kind === 'folder' ? marker : linkedFolder(marker)) };
}

function objectionToKept(folder: string, own: string | undefined): string | undefined {
  const common = own === undefined ? undefined : commonFolder(own);
  if (own === undefined || common === undefined) return 'git: where the repository is kept is not understood';
  if (kindOf(join(folder, '.gitmodules')) !== undefined || kindOf(join(common, 'modules')) !== undefined) {
    return 'git: there are submodules, and each has a configuration of its own';
  }
  const settings = new Map<string, string>();
  for (const file of [join(common, 'config'), join(own, 'config.worktree')]) {
    const objection = readSettings(file, settings);
    if (objection !== undefined) return objection;
  }
  return objectionToHook(settings.get('core.hookspath'), folder, common);
}

function objectionToHook(path: string | undefined, folder: string, common: string): string | undefined {
  // One in the user's home is the user's own.
  if (path?.startsWith('~/') === true) return undefined;
  if (path !== undefined && !/^[\w./@ -]+$/.test(path)) return 'git: where hooks are kept is not understood';
  const hooks = path === undefined ? join(common, 'hooks') : resolve(folder, path);
  return kindOf(join(hooks, 'post-index-change')) === undefined
    ? undefined
    : 'git: a hook runs when the index is refreshed';
}

function readSettings(file: string, settings: Map<string, string>): string | undefined {
  const text = textOf(file);
  if (text === undefined) return kindOf(file) === undefined ? undefined : 'git: the configuration is not readable';
  const strange = 'git: the configuration of the repository is not understood';
  if (text.length > CONFIG_CHARS_MAX) return strange;
  let section: string | undefined;
  for (const whole of text.split('\n')) {
    const header = /^\s*\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\](.*)$/.exec(whole);
    if (header !== null) {
      const [, name = '', sub] = header;
      section = name.toLowerCase() + (sub === undefined ? '' : `.${sub}`);
    }
    const line = (header?.[3] ?? whole).trim();
    if (line === '' || /^[#;]/.test(line)) continue;
    const setting = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(line);
    if (setting === null || section === undefined || line.endsWith('\\')) return strange;
    const name = `${section}.${setting[1]?.toLowerCase()}`;
    if (!HARMLESS_SETTING.test(name)) return `git: the repository sets ${name}, which may start something`;
    settings.set(name, setting[2] ?? '');
  }
  return undefined;
}

// A linked worktree has a file that names its folder, and in that a file that names the common one.
function linkedFolder(marker: string): string | undefined {
  const path = /^gitdir: (.+)$/m.exec(textOf(marker) ?? '')?.[1]?.trim();
  return path === undefined ? undefined : resolve(dirname(marker), path);
}

function commonFolder(own: string): string | undefined {
  if (kindOf(join(own, 'HEAD')) === undefined) return undefined;
  const common = textOf(join(own, 'commondir'))?.trim();
  if (common === undefined) return own;
  return isAbsolute(common) ? common : join(own, common);
}

function kindOf(path: string): 'file' | 'folder' | undefined {
  const found = attempt(() => statSync(path, { throwIfNoEntry: false }));
  return found === undefined ? undefined : found.isDirectory() ? 'folder' : 'file';
}

function textOf(path: string): string | undefined {
  return kindOf(path) === 'file' ? attempt(() => readFileSync(path, 'utf8')) : undefined;
}

function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}
