// Which view shows what happens: --view, or --json for short.

import { UsageError } from '@drover/core/failure';
import { choice, flag, type Values } from '../command.ts';
import type { Io } from '../io.ts';
import type { View } from './view.ts';

export const viewOptions = {
  view: choice('Output:', 'What to show', ['lines', 'json', 'silent']),
  json: flag('Output:', 'The same as --view json: one event a line'),
};

export async function openView(
  { view, json }: Values<typeof viewOptions>,
  asked: 'asked shown' | 'asked known',
  io: Io,
): Promise<View> {
  if (json && view !== undefined && view !== 'json') {
    throw new UsageError(`--json and --view ${view} contradict each other; give one of them`);
  }
  switch (json ? 'json' : (view ?? 'lines')) {
    case 'lines':
      return (await import('./lines.ts')).linesView(io.stdout, io.env, asked);
    case 'json':
      return (await import('./json.ts')).jsonView(io.stdout);
    case 'silent':
      return (await import('./silent.ts')).silentView;
  }
}
