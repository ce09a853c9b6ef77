// drover demo: an agent mends a small project while you watch. No key, no network.
//
// The model's words are scripted; the loop, the tools, the tests and the result are real, and the demo
// fails if the tests do. It reads no config and no key, and leaves nothing behind unless asked.

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { newId } from '@drover/core/ids';
import { command, flag } from '../command.ts';
import { openDiagnostics } from '../diagnostics.ts';
import { exitCode } from '../exit-code.ts';
import { type Io, print } from '../io.ts';
import { loadSettings } from '../settings.ts';
import { wrapped } from '../views/word-wrap.ts';
import { type Style, styleFor } from '../views/style.ts';

const COLUMNS_DEFAULT = 80;
const GATE = 'node --test';

export const demo = command({
  options: { keep: flag('Options:', 'Leave the sample project where it is, to look at') },
  examples: [
    ['drover demo', 'Watch it'],
    ['drover demo --keep', 'Watch it, and look at the result afterwards'],
  ],
  async run({ keep }, io) {
    const folder = await mkdtemp(join(tmpdir(), 'drover-demo-'));
    try {
      const code = await show(join(folder, 'slugs'), sheltered(io, folder));
      if (code === exitCode.done) await print(io.stdout, whatNext(io));
      return code;
    } finally {
      if (keep) await print(io.stdout, `\nThe project is in ${join(folder, 'slugs')}\n`);
      else await rm(folder, { recursive: true, force: true });
    }
  },
});

/** The same outside, without the user's own config, keys and state, and with our Node first on the PATH. */
function sheltered(io: Io, folder: string): Io {
  const { TERM, LANG, LC_ALL, NO_COLOR, FORCE_COLOR, TMPDIR } = io.env;
  const path = [dirname(io.node), ...(io.env['PATH'] === undefined ? [] : [io.env['PATH']])].join(delimiter);
  return { ...io, env: { TERM, LANG, LC_ALL, NO_COLOR, FORCE_COLOR, TMPDIR, HOME: folder, PATH: path } };
}

async function show(project: string, io: Io): Promise<number> {
  const [{ execute }, { changesIn, makeSample }, { demoScript, PROMPT }, { linesView }] = await Promise.all([
    import('../execution/execution.ts'),
    import('../demo/sample.ts'),
    import('../demo/script.ts'),
    import('../views/lines.ts'),
  ]);
  const path = io.env['PATH'] ?? '';
  const style = styleFor(io.stdout, io.env);
  await mkdir(project, { recursive: true });
  await makeSample(project, path);
  const columns = io.stdout.columns ?? COLUMNS_DEFAULT;
  const task = wrapped(PROMPT, columns - 2).replaceAll('\n', '\n  ');
  await print(
    io.stdout,
    `${wrapped('A small library with a failing test, and an agent that is told:', columns)}\n  ${style('bold', task)}\n\n`,
  );

  const { code } = await execute(
    {
      session: newId('ses'),
      input: { content: PROMPT },
      cwd: project,
      model: {
        kind: 'rehearsed',
        label: 'rehearsal/demo',
        provider: 'rehearsal',
        name: 'demo',
        api: 'anthropic',
        script: demoScript(io.stdout.isTTY === true),
      },
      view: linesView(io.stdout, io.env, 'asked known'),
      rules: [],
      yes: false,
      gates: [GATE],
      turns: undefined,
      timeoutMs: undefined,
      budget: undefined,
    },
    { settings: await loadSettings(io, project), diagnostics: await openDiagnostics(io, undefined), io },
  );
  if (code === exitCode.done) await print(io.stdout, epilogue(await changesIn(project, path), style, io));
  return code;
}

function epilogue(diff: string, style: Style, io: Io): string {
  const columns = io.stdout.columns ?? COLUMNS_DEFAULT;
  const lines = diff
    .trimEnd()
    .split('\n')
    .filter((line) => !/^(diff|index|---|\+\+\+|@@) /.test(line));
  return [
    '',
    style('bold', wrapped(`What changed in src/slug.js, and now ${GATE} passes:`, columns)),
    ...lines.map((line) => `  ${coloured(line, style)}`),
    '',
  ].join('\n');
}

function whatNext(io: Io): string {
  const style = styleFor(io.stdout, io.env);
  const head = wrapped('Only the model was scripted. With a real one:', io.stdout.columns ?? COLUMNS_DEFAULT);
  // In a clone the scripts of the package are how drover is started, and they run in the clone.
  const isClone = io.env['npm_lifecycle_event'] !== undefined;
  const exec = isClone ? 'npx -y pnpm@12.18.0 drover exec --cwd path/to/your/project' : 'drover exec';
  return [
    '',
    style('bold', head),
    '  export ANTHROPIC_API_KEY=…',
    `  ${exec} --model anthropic/claude-sonnet-4-5 "fix the failing test"`,
    '',
  ].join('\n');
}

function coloured(line: string, style: Style): string {
  if (line.startsWith('+')) return style('green', line);
  if (line.startsWith('-')) return style('red', line);
  return style('dim', line);
}
