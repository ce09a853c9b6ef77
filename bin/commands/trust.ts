// drover trust: approves the files of this project that can make drover do something, until they change or move.
//
// Each file is read once: the bytes that are shown are the bytes whose digest is stored. The output hides only exact
// values of secrets, which a stranger does not know. Redaction by pattern would let a file hide lines from the user.

import { resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { type Approval, approvalOf, approve, type ProjectEntry, revoke, whyNotApproved } from '@drover/trust/approvals';
import { placeOf } from '@drover/trust/place';
import { readProjectFile, type ReadEntry } from '@drover/trust/project-file';
import type { ProjectKind } from '@drover/trust/inventory';
import { command, flag, nonEmpty, value } from '../start/command.ts';
import { Person } from '../terminal/person.ts';
import { redactorFor } from '../diagnostics.ts';
import { codeOfStop, exitCode } from '../start/exit-code.ts';
import { complain, type Io, print } from '../io.ts';
import { configPaths, readProjectConfig, stateFolder, workFolder } from '../start/settings.ts';
import { watchForStop } from '../stop.ts';
import { describeFile } from '../trust/describe.ts';
import { namedEntry } from '../trust/named-file.ts';
import { findProject, KIND_WORDS } from '../trust/open-project.ts';
import { count } from '../views/text/figures.ts';
import { styleFor } from '../views/text/style.ts';
import { clean, forLog } from '../views/text/terminal-text.ts';

export const trust = command({
  word: {
    name: 'file',
    about: 'Approve this file only, such as a batch spec (default: all files found)',
    required: false,
  },
  options: {
    cwd: value('Input:', 'DIR', 'Folder of the project (default: the current folder)', nonEmpty),
    yes: flag('Options:', 'Approve without asking'),
    revoke: flag('Options:', 'Revoke every approval of this project'),
  },
  examples: [
    ['drover trust', 'Review what files of the project would do, and approve them'],
    ['drover trust refactor.yaml', 'Review and approve a batch spec with commands'],
    ['drover trust --revoke', 'Treat the project as untrusted again'],
  ],
  async run({ word, cwd, yes, revoke: isRevoked }, io) {
    const home = stateFolder(io);
    const folder = await workFolder(cwd, io);
    if (isRevoked) return revoked(home, folder, io);
    const files = word === undefined ? await filesIn(folder, io) : [await namedFile(word, home, io)];
    const open = files.filter(({ approval }) => approval !== 'approved');
    if (open.length === 0) {
      const names = files.map(({ entry }) => clean(entry.file)).join(', ');
      await print(io.stdout, `${names} ${files.length === 1 ? 'is' : 'are'} already approved.\n`);
      return exitCode.done;
    }
    await show(open, io);
    return yes ? approved(home, open, io) : asked(home, open, io);
  },
});

/** A readable file, with what is known of its approval. */
type Candidate = {
  readonly kind: ProjectKind | undefined; // undefined: the user named it
  readonly entry: ProjectEntry;
  readonly read: ReadEntry;
  readonly approval: Approval;
};

async function filesIn(folder: string, io: Io): Promise<readonly Candidate[]> {
  const project = await findProject(io, folder, { trustsAll: false });
  // Its mistakes are errors: a config with mistakes can't be used, approved or not.
  const { project: config } = await configPaths(io, folder);
  if (config !== undefined) await readProjectConfig(config);
  const { repository } = project;
  const files: Candidate[] = [];
  for (const { kind, name, read, approval } of project.files) {
    if ('problem' in read) await complain(io, `${name} ${read.problem}`);
    else files.push({ kind, entry: { repository, file: name, sha256: read.sha256 }, read, approval });
  }
  if (files.length === 0)
    throw new UsageError(`no file of a project here needs an approval (looked from ${folder} up)`);
  return files;
}

async function namedFile(word: string, home: string, io: Io): Promise<Candidate> {
  const path = resolve(io.cwd, word);
  const { repository } = await placeOf(await workFolder(resolve(path, '..'), io));
  const read = await readProjectFile(path, repository);
  if (read === undefined) throw new UsageError(`${word} does not exist; name a file of the project`);
  if ('problem' in read) throw new UsageError(`${word} ${read.problem}`);
  const entry = await namedEntry(path, read.sha256);
  return { kind: undefined, entry, read, approval: await approvalOf(home, entry) };
}

async function show(files: readonly Candidate[], io: Io): Promise<void> {
  const redactor = await redactorFor(io, 'values only');
  const style = styleFor(io.stdout, io.env);
  let isHidden = false;
  for (const { kind, entry, read, approval } of files) {
    const { facts, lines } = describeFile(kind, read);
    const of = kind === undefined ? '' : ` (${KIND_WORDS[kind]})`;
    const content = [
      `${style('bold', clean(entry.file))}${of}`,
      ...facts.map((fact) => `  ${clean(fact)}`),
      ...lines.map((line) => `  ${style('dim', '|')} ${clean(line)}`),
      '',
    ].join('\n');
    const shown = redactor.text(content);
    isHidden ||= shown !== content;
    await print(io.stdout, forLog(shown, io.env));
    const why = whyNotApproved(approval);
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

async function asked(home: string, files: readonly Candidate[], io: Io): Promise<number> {
  const person = Person.at(io);
  if (person === undefined) throw new UsageError('there is no terminal to ask on; approve with --yes');
  const stop = watchForStop(io, () => undefined);
  try {
    const what = files.length === 1 ? 'this file' : `these ${count(files.length)} files`;
    const words = `\nApprove ${what}? They can choose where requests go, start programs and run without asking. [y]es [n]o: `;
    const isAgreed = await person.choose(
      files.length === 1 ? words.replace('They can', 'It can') : words,
      ANSWERS,
      stop.signal,
    );
    if (stop.signal.aborted) return codeOfStop(stop.cause());
    if (isAgreed === true) return await approved(home, files, io);
    await print(io.stdout, 'Nothing was approved.\n');
    return exitCode.done;
  } finally {
    stop.close();
    person.close();
  }
}

async function approved(home: string, files: readonly Candidate[], io: Io): Promise<number> {
  await approve(
    home,
    files.map(({ entry }) => entry),
  );
  const again = files.length === 1 ? 'If the file changes or moves, approve it again.' : AGAIN;
  await print(io.stdout, `Approved. ${again}\n`);
  return exitCode.done;
}

const AGAIN = 'A file that changes or moves needs a new approval.';

async function revoked(home: string, folder: string, io: Io): Promise<number> {
  const { repository } = await placeOf(folder);
  const removed = await revoke(home, repository);
  const what = removed === 0 ? 'had no approval' : 'is no longer approved';
  await print(io.stdout, `${clean(repository)} ${what}.\n`);
  return exitCode.done;
}
