// drover trust: approves the files of this project that can make drover do something, until they change or move.
//
// Each file is read once: the bytes that are shown are the bytes whose digest is stored. The output hides only exact
// values of secrets, which a stranger does not know. Redaction by pattern would let a file hide lines from the user.

import { resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import {
  type Approval,
  trustApprovalOf,
  approveTrustEntries,
  type ProjectEntry,
  revokeTrustApprovals,
  whyNotTrusted,
} from '@drover/trust/approvals';
import { projectPlaceForTrust } from '@drover/trust/place';
import { readProjectFile, type ReadEntry } from '@drover/trust/project-file';
import type { ProjectKind } from '@drover/trust/inventory';
import { defineCommand, flagOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { Person } from '../terminal/person.ts';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { exitCodeOfStop, exitCode } from '../start/exit-code.ts';
import { printError, type Io, print } from '../io.ts';
import { findConfigPaths, readProjectConfig, stateFolder, findWorkFolder } from '../start/settings.ts';
import { watchForStopSignal } from '../stop.ts';
import { describeTrustFile } from '../trust/describe.ts';
import { namedFileTrustEntry } from '../trust/named-file.ts';
import { findTrustProject, KIND_WORDS } from '../trust/open-project.ts';
import { countText } from '../views/text/figures.ts';
import { textStyle } from '../views/text/style.ts';
import { cleanText, textForLog } from '../views/text/terminal-text.ts';

export const trust = defineCommand({
  word: {
    name: 'file',
    about: 'Approve this file only, such as a batch spec (default: all files found)',
    required: false,
  },
  options: {
    cwd: valueOption('Input:', 'DIR', 'Folder of the project (default: the current folder)', parseNonEmpty),
    yes: flagOption('Options:', 'Approve without asking'),
    revoke: flagOption('Options:', 'Revoke every approval of this project'),
  },
  examples: [
    ['drover trust', 'Review what files of the project would do, and approve them'],
    ['drover trust refactor.yaml', 'Review and approve a batch spec with commands'],
    ['drover trust --revoke', 'Treat the project as untrusted again'],
  ],
  async run({ word, cwd, yes, revoke: isRevoked }, io) {
    const home = stateFolder(io);
    const folder = await findWorkFolder(cwd, io);
    if (isRevoked) return revokeTrust(home, folder, io);
    const files = word === undefined ? await listTrustFiles(folder, io) : [await readNamedTrustFile(word, home, io)];
    const open = files.filter(({ approval }) => approval !== 'approved');
    if (open.length === 0) {
      const names = files.map(({ entry }) => cleanText(entry.file)).join(', ');
      await print(io.stdout, `${names} ${files.length === 1 ? 'is' : 'are'} already approved.\n`);
      return exitCode.done;
    }
    await showTrustFiles(open, io);
    return yes ? approveTrustFiles(home, open, io) : askAboutTrust(home, open, io);
  },
});

/** A readable file, with what is known of its approval. */
type Candidate = {
  readonly kind: ProjectKind | undefined; // undefined: the user named it
  readonly entry: ProjectEntry;
  readonly read: ReadEntry;
  readonly approval: Approval;
};

async function listTrustFiles(folder: string, io: Io): Promise<readonly Candidate[]> {
  const project = await findTrustProject(io, folder, { trustsAll: false });
  // Its mistakes are errors: a config with mistakes can't be used, approved or not.
  const { project: config } = await findConfigPaths(io, folder);
  if (config !== undefined) await readProjectConfig(config);
  const { repository } = project;
  const files: Candidate[] = [];
  for (const { kind, name, read, approval } of project.files) {
    if ('problem' in read) await printError(io, `${name} ${read.problem}`);
    else files.push({ kind, entry: { repository, file: name, sha256: read.sha256 }, read, approval });
  }
  if (files.length === 0)
    throw new UsageError(`no file of a project here needs an approval (looked from ${folder} up)`);
  return files;
}

async function readNamedTrustFile(word: string, home: string, io: Io): Promise<Candidate> {
  const path = resolve(io.cwd, word);
  const { repository } = await projectPlaceForTrust(await findWorkFolder(resolve(path, '..'), io));
  const read = await readProjectFile(path, repository);
  if (read === undefined) throw new UsageError(`${word} does not exist; name a file of the project`);
  if ('problem' in read) throw new UsageError(`${word} ${read.problem}`);
  const entry = await namedFileTrustEntry(path, read.sha256);
  return { kind: undefined, entry, read, approval: await trustApprovalOf(home, entry) };
}

async function showTrustFiles(files: readonly Candidate[], io: Io): Promise<void> {
  const redactor = await diagnosticsRedactor(io, 'values only');
  const style = textStyle(io.stdout, io.env);
  let isHidden = false;
  for (const { kind, entry, read, approval } of files) {
    const { facts, lines } = describeTrustFile(kind, read);
    const of = kind === undefined ? '' : ` (${KIND_WORDS[kind]})`;
    const content = [
      `${style('bold', cleanText(entry.file))}${of}`,
      ...facts.map((fact) => `  ${cleanText(fact)}`),
      ...lines.map((line) => `  ${style('dim', '|')} ${cleanText(line)}`),
      '',
    ].join('\n');
    const shown = redactor.text(content);
    isHidden ||= shown !== content;
    await print(io.stdout, textForLog(shown, io.env));
    const why = whyNotTrusted(approval);
    if (why !== undefined) await print(io.stdout, `Approve it again: ${why}.\n`);
  }
  if (isHidden) await print(io.stdout, 'Values of your secrets are not shown.\n');
}

const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
]);

async function askAboutTrust(home: string, files: readonly Candidate[], io: Io): Promise<number> {
  const person = Person.at(io);
  if (person === undefined) throw new UsageError('there is no terminal to ask on; approve with --yes');
  const stop = watchForStopSignal(io, () => undefined);
  try {
    const what = files.length === 1 ? 'this file' : `these ${countText(files.length)} files`;
    const words = `\nApprove ${what}? They can choose where requests go, start programs and run without asking. [y]es [n]o: `;
    const isAgreed = await person.choose(
      files.length === 1 ? words.replace('They can', 'It can') : words,
      ANSWERS,
      stop.signal,
    );
    if (stop.signal.aborted) return exitCodeOfStop(stop.cause());
    if (isAgreed === true) return await approveTrustFiles(home, files, io);
    await print(io.stdout, 'Nothing was approved.\n');
    return exitCode.done;
  } finally {
    stop.close();
    person.close();
  }
}

async function approveTrustFiles(home: string, files: readonly Candidate[], io: Io): Promise<number> {
  await approveTrustEntries(
    home,
    files.map(({ entry }) => entry),
  );
  const again = files.length === 1 ? 'If the file changes or moves, approve it again.' : AGAIN;
  await print(io.stdout, `Approved. ${again}\n`);
  return exitCode.done;
}

const AGAIN = 'A file that changes or moves needs a new approval.';

async function revokeTrust(home: string, folder: string, io: Io): Promise<number> {
  const { repository } = await projectPlaceForTrust(folder);
  const removed = await revokeTrustApprovals(home, repository);
  const what = removed === 0 ? 'had no approval' : 'is no longer approved';
  await print(io.stdout, `${cleanText(repository)} ${what}.\n`);
  return exitCode.done;
}
