// drover exec <prompt>: one agent, headless, no coordinator.

import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { UsageError } from '@drover/core/failure';
import { parseRule } from '@drover/core/permission/rules';
import { choice, command, flag, list, nonEmpty, value } from '../command.ts';
import { openDiagnostics } from '../diagnostics.ts';
import { chooseModel } from '../execution/model-choice.ts';
import { readPrompt } from '../execution/prompt.ts';
import { type Io, print } from '../io.ts';
import { parseBudget, parseCount, parseDuration } from '../quantities.ts';
import { loadSettings } from '../settings.ts';
import { clean } from '../views/terminal-text.ts';
import type { View } from '../views/view.ts';

const TURNS_MAX = 10_000;

export const exec = command({
  word: { name: 'prompt', about: 'What the agent shall do; - reads it from standard input', required: false },
  options: {
    model: value('Model:', 'PROVIDER/NAME', 'The model to ask', nonEmpty),
    'prompt-file': value('Input:', 'FILE', 'Read the prompt from a file', nonEmpty),
    cwd: value('Input:', 'DIR', 'The folder to work in', nonEmpty),
    view: choice('Output:', 'What to show', ['lines', 'json', 'silent']),
    json: flag('Output:', 'The same as --view json: one event a line'),
    log: value('Output:', 'FILE', 'Write diagnostics to a file', nonEmpty),
    allow: list('Permission:', 'RULE', "Allow what matches, such as 'shell(pnpm test*)'", (text) =>
      parseRule(text, 'allow'),
    ),
    ask: list('Permission:', 'RULE', 'Ask before what matches', (text) => parseRule(text, 'ask')),
    deny: list('Permission:', 'RULE', 'Never allow what matches, whatever else says', (text) =>
      parseRule(text, 'deny'),
    ),
    yes: flag('Permission:', 'Answer every question with yes; what is denied stays denied'),
    turns: value('Limits:', 'N', 'At most so many steps', (text) => parseCount(text, 1, TURNS_MAX)),
    timeout: value('Limits:', 'TIME', 'Stop after so long: 90s, 30m, 1h30m', parseDuration),
    budget: value('Limits:', 'AMOUNT', 'Spend no more than this: 5usd, 200ktok', parseBudget),
    gate: list('Limits:', 'CMD', 'A command that must pass when the agent is done', nonEmpty),
  },
  examples: [
    ['drover exec "fix the failing test" --model anthropic/claude-sonnet-4-5', 'With ANTHROPIC_API_KEY set'],
    ['drover exec - --json < prompt.txt', 'For scripts: the prompt from standard input, events as JSON'],
    [`drover exec "update the docs" --allow 'shell(pnpm *)' --budget 2usd`, 'Allow some commands, cap the cost'],
  ],
  async run(args, io) {
    const cwd = await folderAt(resolve(io.cwd, args.cwd ?? '.'));
    if (args.json && args.view !== undefined && args.view !== 'json') {
      throw new UsageError(`--json and --view ${args.view} contradict each other; give one of them`);
    }
    const prompt = await readPrompt({ word: args.word, file: args['prompt-file'], cwd: io.cwd, stdin: io.stdin });
    const settings = await loadSettings(io, cwd);
    for (const warning of settings.warnings) await print(io.stderr, `${clean(`drover: ${warning}`)}\n`);
    const model = chooseModel(args.model, settings, io.cwd);
    const view = await openView(args.json ? 'json' : (args.view ?? 'lines'), io);
    const diagnostics = await openDiagnostics(io, args.log);

    const { allow, ask, deny, yes, turns, timeout, budget, gate } = args;
    const rules = [...settings.rules, ...allow, ...ask, ...deny];
    const gates = [...settings.gates, ...gate];
    const { execute } = await import('../execution/execution.ts');
    try {
      const work = { prompt, cwd, model, view, rules, yes, gates, turns, timeoutMs: timeout, budget };
      return await execute(work, { settings, diagnostics, io });
    } finally {
      await diagnostics.close();
    }
  },
});

async function folderAt(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() !== true) throw new UsageError(`--cwd: there is no folder ${path}`);
  return path;
}

async function openView(name: 'lines' | 'json' | 'silent', io: Io): Promise<View> {
  switch (name) {
    case 'lines':
      return (await import('../views/lines.ts')).linesView(io.stdout, io.env);
    case 'json':
      return (await import('../views/json.ts')).jsonView(io.stdout);
    case 'silent':
      return (await import('../views/silent.ts')).silentView;
  }
}
