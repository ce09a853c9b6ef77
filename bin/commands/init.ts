// drover init: writes a commented config and an example batch spec. Existing files stay.

import { join, relative } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { command, flag, nonEmpty, value } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { exampleBatch } from '../init/batch-text.ts';
import { projectConfig, userConfig } from '../init/config-text.ts';
import { lookAtProject } from '../init/project.ts';
import { type FileDraft, writeMissingFiles, type Written } from '../init/write-files.ts';
import { type Io, print } from '../io.ts';
import { projectFolders } from '@drover/trust/place';
import { configPaths, stateFolder, workFolder } from '../start/settings.ts';
import { styleFor } from '../views/text/style.ts';
import { clean, columnsOf } from '../views/text/terminal-text.ts';
import { wrapped } from '../views/text/word-wrap.ts';
import { statIfThere } from '@drover/core/files/lookup';

export const init = command({
  options: {
    user: flag('Options:', 'Write only your own config, ~/.config/drover/config.yaml'),
    cwd: value('Options:', 'DIR', 'Folder of the project (default: the current folder)', nonEmpty),
  },
  examples: [
    ['drover init', 'A config and an example batch in .drover, at the top of the repository'],
    ['drover init --user', 'Your own defaults: the model, servers, what is allowed'],
  ],
  async run({ user, cwd: folder }, io) {
    const cwd = await workFolder(folder, io);
    const plan = user ? await userPlan(io, cwd) : await projectPlan(io, cwd);
    await print(io.stdout, told(await writeMissingFiles(plan.drafts), plan.next, io));
    return exitCode.done;
  },
});

type Next = readonly [command: string, about: string];
type Plan = { readonly drafts: readonly FileDraft[]; readonly next: readonly Next[] };

const EXAMINE: Next = ['drover doctor', 'check that everything drover needs is there'];

async function userPlan(io: Io, cwd: string): Promise<Plan> {
  const { user: path } = await configPaths(io, cwd);
  const draft = { path, text: userConfig(), about: 'your defaults: every key, commented out' };
  return { drafts: [draft], next: [EXAMINE] };
}

async function projectPlan(io: Io, cwd: string): Promise<Plan> {
  const top = (await projectFolders(cwd)).at(-1) ?? cwd;
  const folder = join(top, '.drover');
  if (folder === stateFolder(io))
    throw new UsageError(`${folder} is where drover keeps its state; go to a project, or say drover init --user`);
  const project = await lookAtProject(top);
  const isRepository = (await statIfThere(join(top, '.git'))) !== undefined;
  const drafts = [
    {
      path: join(folder, 'config.yaml'),
      text: projectConfig(project.gates),
      about: 'settings of the project',
    },
    {
      path: join(folder, 'batch.yaml'),
      text: exampleBatch(project),
      about: 'an example of a batch',
    },
    { path: join(folder, '.gitignore'), text: 'out/\n', about: 'keeps outputs of batches out of git' },
  ];
  const spec = relative(io.cwd, join(folder, 'batch.yaml'));
  const begin: Next = ['git init', 'drover run and batch work in a git repository, and this is none yet'];
  const list: Next = [`drover batch ${spec} --list`, 'see which tasks the example would make'];
  return { drafts, next: [...(isRepository ? [] : [begin]), EXAMINE, ...(isRepository ? [list] : [])] };
}

function told(files: readonly Written[], next: readonly Next[], io: Io): string {
  const style = styleFor(io.stdout, io.env);
  const columns = columnsOf(io.stdout);
  const line = (name: string, about: string): string =>
    `  ${clean(name)}\n${style('dim', wrapped(about, columns - 4).replaceAll(/^/gm, '    '))}\n`;
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
