// drover demo: a goal becomes a plan, workers carry it out side by side, and what they did is merged and
// tested, while you watch. No key, no network.
//
// The models' words are scripted; the threads, the tools, the merges and the tests are real, and the demo
// fails if they do. It reads no config and no key, and leaves nothing behind unless asked.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { newId } from '@drover/core/ids';
import { NO_EXTENSIONS } from '@drover/core/hooks/extensions';
import { defineCommand, flagOption } from '../start/command.ts';
import { openDiagnostics } from '../diagnostics.ts';
import type { ModelChoice } from '../model/model-choice.ts';
import { exitCode } from '../start/exit-code.ts';
import { type Io, print } from '../io.ts';
import { untypedRunArgs } from '../run/run-options.ts';
import { newRunSettings, openRunSurroundings } from '../run/start-run.ts';
import { terminalColumns } from '../views/text/terminal-text.ts';
import { openRunView } from '../views/view-choice.ts';
import { wrapText } from '../views/text/word-wrap.ts';
import { type Containment, openContainment } from '../sandbox/containment.ts';
import { textStyle } from '../views/text/style.ts';

const GATE = 'node --test';
const WORKERS = 4;

export const demo = defineCommand({
  options: { keep: flagOption('Options:', 'Keep the sample project') },
  examples: [
    ['drover demo', 'Watch it'],
    ['drover demo --keep', 'Watch it, and look at the result afterwards'],
  ],
  async run({ keep }, io) {
    const folder = await mkdtemp(join(tmpdir(), 'drover-demo-'));
    try {
      const code = await runDemo(join(folder, 'shop'), keep, demoIo(io, folder));
      if (code === exitCode.done) await print(io.stdout, afterDemoSentence(io, keep));
      return code;
    } finally {
      if (keep) await print(io.stdout, demoFolderSentence(folder));
      else await rm(folder, { recursive: true, force: true });
    }
  },
});

function demoFolderSentence(folder: string): string {
  return `\nThe project is in ${join(folder, 'shop')}\nThe run is found with DROVER_HOME=${join(folder, '.drover')}\n`;
}

/** The same Io without the user's config, keys and state, and with this Node first on the PATH. */
function demoIo(io: Io, folder: string): Io {
  const { TERM, LANG, LC_ALL, NO_COLOR, FORCE_COLOR, TMPDIR } = io.env;
  const path = [dirname(io.node), ...(io.env['PATH'] === undefined ? [] : [io.env['PATH']])].join(delimiter);
  return { ...io, env: { TERM, LANG, LC_ALL, NO_COLOR, FORCE_COLOR, TMPDIR, HOME: folder, PATH: path } };
}

async function runDemo(project: string, isKept: boolean, io: Io): Promise<number> {
  const [{ carryRun }, { readDemoHistory, makeDemoSample }, { demoScript, GOAL }, { Sights }] = await Promise.all([
    import('../run/running.ts'),
    import('../demo/sample.ts'),
    import('../demo/script.ts'),
    import('../demo/sights.ts'),
  ]);
  const path = io.env['PATH'] ?? '';
  const columns = terminalColumns(io.stdout);
  await mkdir(project, { recursive: true });
  await makeDemoSample(project, path);
  await print(
    io.stdout,
    `${wrapText('A small library with its tests, and a coordinator with four workers.', columns)}\n\n`,
  );

  const model: ModelChoice = {
    kind: 'rehearsed',
    label: 'rehearsal/demo',
    provider: 'rehearsal',
    name: 'demo',
    api: 'anthropic',
    script: demoScript(io.stdout.isTTY === true),
  };
  const args = { ...untypedRunArgs(), model: model.label, workers: WORKERS, gate: [GATE], yes: true };
  const around = await openRunSurroundings(project, io);
  // The script is part of drover, so its name is not a path below the user's folder.
  const named = await newRunSettings(args, { goal: GOAL, tasks: undefined }, around, io);
  const settings = { ...named, model: model.label };
  const containment = await openDemoContainment(around.settings.home, io);
  const sights = new Sights(await openRunView({ ...args, when: isKept ? 'at the end' : 'for the last time' }, io));
  const end = await carryRun(
    {
      id: newId('run'),
      settings,
      repository: around.repository,
      models: {
        roles: { plan: [model.label], work: [model.label] },
        chosen: new Map([[model.label, { model, price: PRICE }]]),
      },
      extensions: NO_EXTENSIONS,
      plan: undefined,
      view: sights,
      rules: [],
      yes: true,
      containment,
      mayBePartial: false,
      result: undefined,
    },
    { settings: around.settings, diagnostics: await openDiagnostics(io, undefined), io },
  );
  const { branch } = end.delivered ?? {};
  const history = branch === undefined ? [] : await readDemoHistory(project, path, branch);
  await print(io.stdout, sights.told(history, { columns, style: textStyle(io.stdout, io.env) }));
  return end.exitCode;
}

/** Sandbox mode auto, even in CI: the demo runs only drover's own commands. */
async function openDemoContainment(state: string, io: Io): Promise<Containment> {
  const containment = await openContainment({ mode: 'auto', net: [], writable: [] }, { io, state, project: io.cwd });
  if (containment.notice !== undefined) {
    const sentence = `This machine has no sandbox, so the demo runs its own commands without one: ${containment.missing}`;
    await print(io.stdout, `${wrapText(sentence, terminalColumns(io.stdout))}\n\n`);
  }
  return containment;
}

// An assumed price, in US dollars per million tokens.
const PRICE = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

function afterDemoSentence(io: Io, isKept: boolean): string {
  const style = textStyle(io.stdout, io.env);
  const head = wrapText('Only the models’ words were scripted. With a real one:', terminalColumns(io.stdout));
  // In a clone the scripts of the package are how drover is started, and they run in the clone.
  const isClone = io.env['npm_lifecycle_event'] !== undefined;
  const run = isClone ? 'npx -y pnpm@12.18.0 drover run --cwd path/to/your/project' : 'drover run';
  return [
    '',
    style('bold', head),
    '  export ANTHROPIC_API_KEY=…',
    `  ${run} "…" --gate "npm test"`,
    ...(isKept
      ? []
      : [
          '',
          style(
            'dim',
            wrapText(
              'The sample is gone again, branch and all; drover demo --keep leaves it to look at.',
              terminalColumns(io.stdout),
            ),
          ),
        ]),
    '',
  ].join('\n');
}
