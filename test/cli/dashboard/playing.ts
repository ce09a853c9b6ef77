// A dashboard to which a test tells the events of a run.

import { PassThrough } from 'node:stream';
import type { Recorded } from '@drover/protocol/events';
import { onTestFinished } from 'vitest';
import { dashboardView } from '../../../bin/views/dashboard/dashboard.ts';
import type { RunView } from '../../../bin/views/view.ts';
import { FakeTerminal, type Size } from '../views/terminal.ts';

export const PAINTED_MS = 300; // a paint comes within a quarter of a second
export const PLAIN = { NO_COLOR: '1' };

type Playing = {
  readonly terminal: FakeTerminal;
  readonly view: RunView;
  readonly play: (to: number) => Promise<void>;
};

/** A dashboard to which a run is told; its clock is the run's. */
export async function playing(
  events: readonly Recorded[],
  size: Size,
  { env = PLAIN, hasKeys = true }: { env?: Record<string, string>; hasKeys?: boolean } = {},
): Promise<Playing> {
  const terminal = new FakeTerminal(size);
  let told = 0;
  const io = terminal.io(env);
  const stdin = hasKeys ? io.stdin : new PassThrough();
  const view = dashboardView({ ...io, stdin }, () => Date.parse(events[Math.max(0, told - 1)]?.at ?? ''));
  onTestFinished(() => view.close());
  const play = async (to: number): Promise<void> => {
    for (const event of events.slice(told, to)) {
      told += 1;
      await view.show(event);
    }
  };
  return { terminal, view, play };
}

/** Up to the event of which this is true. */
export function until(events: readonly Recorded[], isIt: (event: Recorded) => boolean): number {
  return events.findIndex(isIt) + 1;
}

export const gateOf = (task: string) => (event: Recorded) => event.type === 'gate_start' && event.tasks.includes(task);
