// Telemetry of a run in this process, if the environment asks for it.

import type { Bus } from '@drover/core/bus';
import { isEventType, type Recorded } from '@drover/protocol/events';
import { telemetrySettings } from '@drover/telemetry/settings';
import { parseTraceParent } from '@drover/telemetry/ids';
import { printError, type Io } from '../io.ts';
import { environmentText } from '../start/settings.ts';

/** Sends spans and metrics while the run works. Call the returned function when the bus is closed. */
export async function sendRunTelemetry(bus: Bus, past: readonly Recorded[], io: Io): Promise<() => Promise<void>> {
  const settings = telemetrySettings(io.env);
  if (settings === undefined) return async () => undefined;
  if ('problem' in settings) {
    await printError(io, `telemetry is off: ${settings.problem}`);
    return async () => undefined;
  }
  const { LiveTelemetry } = await import('@drover/telemetry/live');
  const live = new LiveTelemetry(settings);
  for (const record of past) live.recall(record);
  const reader = bus.reader();
  const following = (async () => {
    for await (const event of reader) if (isEventType(event.type)) live.take(event as Recorded);
  })();
  return async () => {
    await following;
    const problem = await live.close();
    if (problem !== undefined)
      await printError(io, `telemetry was not sent completely: ${problem}; drover export otlp sends it later`);
  };
}

/** The trace that this process is a part of. */
export function readTraceParent(env: Io['env']): { readonly traceparent?: string } {
  const text = environmentText(env, 'TRACEPARENT');
  return parseTraceParent(text) === undefined || text === undefined ? {} : { traceparent: text };
}
