// Finds the files of a project for a command, and tells the user which of them are ignored or trusted unseen.

import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { Project, type ProjectFile } from '@drover/trust/project';
import type { ProjectKind } from '@drover/trust/inventory';
import { printError, type Io } from '../io.ts';
import { flagOption } from '../start/command.ts';
import { homeFolder, stateFolder, type TrustOptions } from '../start/settings.ts';

export const trustOptions = {
  'trust-project': flagOption('Permission:', 'Count all files of this project as approved'),
};

export const KIND_WORDS: Record<ProjectKind, string> = {
  config: 'config',
  mcp: 'MCP servers',
  hooks: 'hooks',
  skill: 'skill',
  agent: 'agent',
};

export async function findTrustProject(io: Io, cwd: string, { trustsAll }: TrustOptions): Promise<Project> {
  const home = stateFolder(io);
  const [user, state] = await Promise.all([realPathOrSame(homeFolder(io.env)), realPathOrSame(home)]);
  const own = [state, ...USER_FOLDERS.map((name) => join(user, name))];
  return Project.find({ cwd, home, own, trustsAll });
}

function realPathOrSame(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}

// In HOME these are the user's own.
const USER_FOLDERS = ['.claude', '.agents', '.codex'];

/** Finds the files of the project, and tells on standard error which are ignored or count unapproved. */
export async function openTrustedProject(io: Io, cwd: string, trust: TrustOptions): Promise<Project> {
  const project = await findTrustProject(io, cwd, trust);
  // Settings tell about the config.
  const ignored = project.ignored.filter(({ kind }) => kind !== 'config');
  for (const { name, read } of ignored) if ('problem' in read) await printError(io, `${name} ${read.problem}`);
  const waiting = ignored.filter(({ read }) => !('problem' in read));
  if (waiting.length > 0) await printError(io, ignoredTrustFilesNotice(waiting));
  const { unapproved } = project;
  if (unapproved.length > 0)
    await printError(io, `--trust-project: these files count as approved: ${unapproved.map(trustFileName).join(', ')}`);
  return project;
}

const NAMED_MAX = 6;

function ignoredTrustFilesNotice(files: readonly ProjectFile[]): string {
  const more = files.length > NAMED_MAX ? ` and ${files.length - NAMED_MAX} more` : '';
  const list = files.slice(0, NAMED_MAX).map(trustFileName).join(', ');
  const one = files.length === 1;
  return `this project's ${list}${more} ${one ? 'is' : 'are'} not approved, so ${one ? 'it is' : 'they are'} ignored; look at ${one ? 'it' : 'them'} with: drover trust`;
}

function trustFileName({ kind, name }: ProjectFile): string {
  return kind === 'mcp' ? name : `${name} (${KIND_WORDS[kind]})`;
}
