// Opens the view that --view or --json selects.

import { UsageError } from '@drover/core/errors';
import { choiceOption, flagOption, type Values } from '../start/command.ts';
import { type Io, print } from '../io.ts';
import type { ReportTime } from './report.ts';
import type { RunView, View } from './view.ts';

export const viewOptions = {
  view: choiceOption('Output:', 'Output format (default: lines)', ['lines', 'json', 'silent']),
  json: flagOption('Output:', 'Print one JSON event per line; same as --view json'),
};

export async function openView(
  { view, json }: Values<typeof viewOptions>,
  asked: 'asked shown' | 'asked known',
  io: Io,
): Promise<View> {
  switch (chosenView({ view, json }) ?? 'lines') {
    case 'lines':
      return (await import('./lines.ts')).linesView(io.stdout, io.env, asked);
    case 'json':
      return (await import('./json.ts')).jsonView(io.stdout);
    case 'silent':
      return (await import('./silent.ts')).silentView;
  }
}

export const runViewOptions = {
  view: choiceOption('Output:', 'Output format (default: dashboard on a terminal, else lines)', [
    'dashboard',
    'lines',
    'json',
    'silent',
  ]),
  json: viewOptions.json,
};

/** Opens the dashboard on a terminal, and lines elsewhere and in CI. `now` is the clock of the events. */
export async function openRunView(
  wanted: Values<typeof runViewOptions> & { readonly when?: ReportTime },
  io: Io,
  now: () => number = Date.now,
): Promise<RunView> {
  const obstacle = obstacleToDashboard(io);
  const view = chosenView(wanted);
  if (view === 'dashboard' && obstacle !== undefined)
    await print(io.stderr, `drover: ${obstacle}, so lines are shown instead of the dashboard\n`);
  switch (view ?? (isContinuousIntegration(io.env) ? 'lines' : 'dashboard')) {
    case 'dashboard':
      if (obstacle !== undefined) return openRunView({ ...wanted, view: 'lines', json: false }, io);
      return (await import('./dashboard/dashboard.ts')).dashboardView(io, now, wanted.when);
    case 'lines':
      return (await import('./run-lines.ts')).runLinesView(io.stdout, io.env, wanted.when);
    case 'json':
      return unpaintedView((await import('./json.ts')).jsonView(io.stdout));
    case 'silent':
      return unpaintedView((await import('./silent.ts')).silentView);
  }
}

/** Whether `openRunView` would open the dashboard. */
export function isViewPainted(wanted: Values<typeof runViewOptions>, io: Io): boolean {
  const view = chosenView(wanted) ?? (isContinuousIntegration(io.env) ? 'lines' : 'dashboard');
  return view === 'dashboard' && obstacleToDashboard(io) === undefined;
}

function chosenView<View extends string>({ view, json }: { readonly view: View | undefined; readonly json: boolean }) {
  if (json && view !== undefined && view !== 'json')
    throw new UsageError(`--json and --view ${view} contradict each other; give one of them`);
  return json ? 'json' : view;
}

/** Why this output cannot show the dashboard; undefined if it can. */
function obstacleToDashboard({ stdout, env }: Io): string | undefined {
  if (stdout.isTTY !== true) return 'the output is not a terminal';
  return env['TERM'] === 'dumb' ? 'this terminal cannot be painted on' : undefined;
}

export function isContinuousIntegration({ CI: ci = '' }: Io['env']): boolean {
  return ci !== '' && ci !== '0' && ci.toLowerCase() !== 'false';
}

/** Views that only append never paint over a question. */
function unpaintedView(view: View): RunView {
  return { ...view, whileAsking: (ask) => ask() };
}
