// Which view shows what happens: --view, or --json for short.

import { UsageError } from '@drover/core/errors';
import { choice, flag, type Values } from '../start/command.ts';
import { type Io, print } from '../io.ts';
import type { RunView, View } from './view.ts';

export const viewOptions = {
  view: choice('Output:', 'What to show', ['lines', 'json', 'silent']),
  json: flag('Output:', 'The same as --view json: one event a line'),
};

export async function openView(
  { view, json }: Values<typeof viewOptions>,
  asked: 'asked shown' | 'asked known',
  io: Io,
): Promise<View> {
  switch (chosen({ view, json }) ?? 'lines') {
    case 'lines':
      return (await import('./lines.ts')).linesView(io.stdout, io.env, asked);
    case 'json':
      return (await import('./json.ts')).jsonView(io.stdout);
    case 'silent':
      return (await import('./silent.ts')).silentView;
  }
}

export const runViewOptions = {
  view: choice('Output:', 'What to show', ['dashboard', 'lines', 'json', 'silent']),
  json: viewOptions.json,
};

/** On a terminal a run is a dashboard; elsewhere, and in CI, it is lines. `now` is the clock of what is shown. */
export async function openRunView(
  wanted: Values<typeof runViewOptions>,
  io: Io,
  now: () => number = Date.now,
): Promise<RunView> {
  const obstacle = obstacleTo(io);
  const view = chosen(wanted);
  if (view === 'dashboard' && obstacle !== undefined)
    await print(io.stderr, `drover: ${obstacle}, so lines are shown instead of the dashboard\n`);
  switch (view ?? (isContinuousIntegration(io.env) ? 'lines' : 'dashboard')) {
    case 'dashboard':
      if (obstacle !== undefined) return openRunView({ view: 'lines', json: false }, io);
      return (await import('./dashboard/dashboard.ts')).dashboardView(io, now);
    case 'lines':
      return (await import('./run-lines.ts')).runLinesView(io.stdout, io.env);
    case 'json':
      return unpainted((await import('./json.ts')).jsonView(io.stdout));
    case 'silent':
      return unpainted((await import('./silent.ts')).silentView);
  }
}

/** Whether that is the dashboard. */
export function isPainted(wanted: Values<typeof runViewOptions>, io: Io): boolean {
  const view = chosen(wanted) ?? (isContinuousIntegration(io.env) ? 'lines' : 'dashboard');
  return view === 'dashboard' && obstacleTo(io) === undefined;
}

function chosen<View extends string>({ view, json }: { readonly view: View | undefined; readonly json: boolean }) {
  if (json && view !== undefined && view !== 'json')
    throw new UsageError(`--json and --view ${view} contradict each other; give one of them`);
  return json ? 'json' : view;
}

/** Why nothing can be painted here. */
function obstacleTo({ stdout, env }: Io): string | undefined {
  if (stdout.isTTY !== true) return 'the output is not a terminal';
  return env['TERM'] === 'dumb' ? 'this terminal cannot be painted on' : undefined;
}

export function isContinuousIntegration({ CI: ci = '' }: Io['env']): boolean {
  return ci !== '' && ci !== '0' && ci.toLowerCase() !== 'false';
}

/** What isn't painted can't be painted over a question. */
function unpainted(view: View): RunView {
  return { ...view, whileAsking: (ask) => ask() };
}
