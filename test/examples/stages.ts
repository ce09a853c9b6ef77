// The place where the commands of a docs page run: a project with tests, a scripted model behind the real wire format,
// and drover on the PATH.

import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Script } from '@drover/rehearsal/script';
import { startRehearsal } from '@drover/rehearsal/server';
import { openShell } from '../support/process/shell.ts';
import { planned, RunDesk, says, submits, writes } from '../support/run/run-desk.ts';
import { temporaryFolder } from '../support/workspace.ts';

export type PageStage = {
  readonly script: Script;
  readonly files?: Readonly<Record<string, string>>;
  /** Commands that run before those of the page. */
  readonly before?: readonly string[];
  /** Exit statuses other than 0, by command. */
  readonly statuses?: Readonly<Record<string, number>>;
};

type Ran = { readonly output: string; readonly status: number };
type Stage = { readonly run: (command: string) => Promise<Ran>; readonly close: () => Promise<void> };

const OUTPUT_CHARS_MAX = 2_000;
const FILES = {
  'package.json': '{ "name": "sample", "type": "module", "scripts": { "test": "node --test" } }\n',
  'src/sum.js': 'export const sum = (a, b) => a + b;\n',
  'test/sum.test.js': `import test from 'node:test';\ntest('works', () => {});\n`,
};
const works = (name: string) => ({ answers: [writes(`src/${name}.js`, `export const ${name} = 1;\n`), submits(name)] });
const TWO_TASKS = planned({ dates: works('dates'), types: works('types') });

/** The first attempt of `dates` fails the gate; a retry does its task. */
const FAILING_ONCE = planned({
  dates: {
    answers: [writes('test/dates.test.js', `throw new Error('not yet');\n`), submits('dates')],
    again: works('dates').answers,
  },
  types: works('types'),
});

const BATCH = `version: 1
name: log
select: { files: ['src/*.js'] }
task: { title: 'Log in {{ path }}', prompt: 'Use the logger in {{ files }}.' }
gates: ['npm test']
`;

export const STAGES: Readonly<Record<string, PageStage>> = {
  'README.md': { script: TWO_TASKS },
  'docs/batch.md': {
    script: { answers: [writes('src/log.js', 'export const log = () => {};\n'), submits('log')] },
    files: { 'refactor.yaml': BATCH },
  },
  'docs/getting-started.md': { script: TWO_TASKS },
  'docs/models.md': { script: TWO_TASKS },
  'docs/recovery.md': {
    script: TWO_TASKS,
    // A run that was stopped after its plan was made.
    before: [
      'drover run "add types to src" > run.log & run=$!',
      'until grep -qs "types" run.log; do sleep 0.1; done; kill $run; wait $run',
    ],
  },
  'docs/rehearsal.md': {
    script: {},
    files: {
      'script.yaml':
        'answers:\n  - calls: [{ name: write, args: { path: hello.txt, content: hello } }]\n  - text: Done.\n',
    },
  },
  'docs/run.md': {
    script: FAILING_ONCE,
    statuses: {
      'drover run --plan plan.yaml --gate "npm test" --workers 4': 3,
      'drover run "add types to src" --gate "npm test" --budget 5usd --timeout 30m --yes': 3,
      // The work of a first attempt exists nowhere else, so it wants a --yes.
      'drover rm 1a2b3c': 2,
    },
  },
  'docs/sandbox.md': {
    script: TWO_TASKS,
    files: { 'refactor.yaml': BATCH, '.drover/config.yaml': 'workers: 2\n' },
    before: ['mkdir -p ~/.cache/builds'],
  },
  'docs/server.md': {
    script: { answers: [says('A small project.')] },
    before: [
      'drover serve --port 0 --json > serve.log 2>&1 &', // Node would make a shared pipe non-blocking
      'until grep -qs url serve.log; do sleep 0.1; done',
      'address=$(grep -o "127.0.0.1:[0-9]*" serve.log | head -n 1)',
    ],
  },
  'docs/telemetry.md': {
    script: TWO_TASKS,
    // There is no collector.
    statuses: { 'drover export otlp 1a2b3c --endpoint http://localhost:4318': 2 },
  },
};

export async function openStage({ script, files, before = [] }: PageStage): Promise<Stage> {
  const server = await startRehearsal({ ...script, strict: true });
  const folder = await temporaryFolder();
  const desk = await RunDesk.in(folder, server, { ...FILES, ...files });
  const bin = join(folder, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'drover'), `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/drover.cjs')}' "$@"\n`);
  await chmod(join(bin, 'drover'), 0o755);
  const env = {
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    ANTHROPIC_API_KEY: 'none',
    ANTHROPIC_BASE_URL: server.url,
    GIT_CONFIG_GLOBAL: '/dev/null',
  };
  const shell = await openShell({ folder, env });
  const run = async (command: string): Promise<Ran> => {
    const printed = await shell.run(onStage(command));
    const [, output = printed, status = '0'] = /^([^]*)\(exit status (\d+)\)$/.exec(printed) ?? [];
    return { output: output.slice(-OUTPUT_CHARS_MAX), status: Number(status) };
  };
  await run(`cd '${desk.repository}'`);
  for (const command of before) await run(command);
  return { run, close: () => server.close() };
}

/** The command with this stage's ids and address in place of the page's. */
function onStage(command: string): string {
  const replaced = command
    .replaceAll('1a2b3c', '$(ls -t ~/.drover/runs | head -n 1)')
    .replaceAll('ses_…', '$(ls ~/.drover/sessions)')
    .replaceAll('127.0.0.1:7117', '$address');
  // No terminal is there to ask on.
  if (/^drover trust\b/.test(replaced)) return `${replaced} --yes`;
  // An event stream has no end.
  return /^curl .*\/events$/.test(replaced) ? `timeout 3 ${replaced}; test $? = 124` : replaced;
}
