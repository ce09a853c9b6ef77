// drover init: writes a commented config and an example batch spec. Existing files stay.

import { join, relative } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { defineCommand, flagOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { exampleBatchForInit } from '../init/batch-text.ts';
import { projectConfigText, userConfigText } from '../init/config-text.ts';
import { detectProject } from '../init/project.ts';
import { type FileDraft, writeMissingFiles, type Written } from '../init/write-files.ts';
import { type Io, print } from '../io.ts';
import { projectFoldersForTrust } from '@drover/trust/place';
import { findConfigPaths, stateFolder, findWorkFolder } from '../start/settings.ts';
import { textStyle } from '../views/text/style.ts';
import { cleanText, terminalColumns } from '../views/text/terminal-text.ts';
import { wrapText } from '../views/text/word-wrap.ts';
import { statIfThere } from '@drover/core/files/lookup';

export const init = defineCommand({
  options: {
    user: flagOption('Options:', 'Write only your own config, ~/.config/drover/config.yaml'),
    cwd: valueOption('Options:', 'DIR', 'Folder of the project (default: the current folder)', parseNonEmpty),
  },
  examples: [
    ['drover init', 'A config and an example batch in .drover, at the top of the repository'],
    ['drover init --user', 'Your own defaults: the model, servers, what is allowed'],
  ],
  async run({ user, cwd: folder }, io) {
    const cwd = await findWorkFolder(folder, io);
    const plan = user ? await planUserFiles(io, cwd) : await planProjectFiles(io, cwd);
    await print(io.stdout, initResultText(await writeMissingFiles(plan.drafts), plan.next, io));
    return exitCode.done;
  },
});

type Next = readonly [command: string, about: string];
type Plan = { readonly drafts: readonly FileDraft[]; readonly next: readonly Next[] };

const EXAMINE: Next = ['drover doctor', 'check that everything drover needs is there'];

async function planUserFiles(io: Io, cwd: string): Promise<Plan> {
  const { user: path } = await findConfigPaths(io, cwd);
  const draft = { path, text: userConfigText(), about: 'your defaults: every key, commented out' };
  return { drafts: [draft], next: [EXAMINE] };
}

async function planProjectFiles(io: Io, cwd: string): Promise<Plan> {
  const top = (await projectFoldersForTrust(cwd)).at(-1) ?? cwd;
  const folder = join(top, '.drover');
  if (folder === stateFolder(io))
    throw new UsageError(`${folder} is where drover keeps its state; go to a project, or say drover init --user`);
  const project = await detectProject(top);
  const isRepository = (await statIfThere(join(top, '.git'))) !== undefined;
  const drafts = [
    {
      path: join(folder, 'config.yaml'),
      text: projectConfigText(project.gates),
      about: 'settings of the project',
    },
    {
      path: join(folder, 'batch.yaml'),
      text: exampleBatchForInit(project),
      about: 'an example of a batch',
    },
    { path: join(folder, '.gitignore'), text: 'out/\n', about: 'keeps outputs of batches out of git' },
  ];
  const spec = relative(io.cwd, join(folder, 'batch.yaml'));
  const begin: Next = ['git init', 'drover run and batch work in a git repository, and this is none yet'];
  const list: Next = [`drover batch ${spec} --list`, 'see which tasks the example would make'];
  return { drafts, next: [...(isRepository ? [] : [begin]), EXAMINE, ...(isRepository ? [list] : [])] };
}

function initResultText(files: readonly Written[], next: readonly Next[], io: Io): string {
  const style = textStyle(io.stdout, io.env);
  const columns = terminalColumns(io.stdout);
  const line = (name: string, about: string): string =>
    `  ${cleanText(name)}\n${style('dim', wrapText(about, columns - 4).replaceAll(/^/gm, '    '))}\n`;
  const block = (heading: string, lines: readonly string[]): string =>
    lines.length === 0 ? '' : `${style('bold', heading)}\n${lines.join('')}\n`;
  const shown = ({ path }: Written): string => (path.startsWith(io.cwd) ? relative(io.cwd, path) : path);
  const [fresh, there] = [files.filter(({ isNew }) => isNew), files.filter(({ isNew }) => !isNew)];
  return [
    block(
      'Written',
      fresh.map((file) => line(shown(file), file.about)),
    ),
    block(
      'Unchanged, because it exists already',
      there.map((file) => line(shown(file), 'remove it to get a new one')),
    ),
    block(
      'Next',
      next.map(([typed, about]) => line(typed, about)),
    ).trimEnd(),
    '\n',
  ].join('');
}
