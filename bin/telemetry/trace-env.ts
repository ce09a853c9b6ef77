// TRACEPARENT for the commands of a run, so that spans of their own become a part of its trace.

import type { RunSettings } from '@drover/protocol/run';
import { parseTraceParent, spanIdOf, traceIdOf, traceParentText } from '@drover/telemetry/ids';
import { telemetrySettings } from '@drover/telemetry/settings';
import type { Io } from '../io.ts';

/** Empty if the run is part of no trace and sends none. */
export function traceEnvironment(run: string, settings: RunSettings, env: Io['env']): Readonly<Record<string, string>> {
  const outer = parseTraceParent(settings.traceparent);
  if (outer === undefined && telemetrySettings(env) === undefined) return {};
  const traceId = outer?.traceId ?? traceIdOf(run);
  return { TRACEPARENT: traceParentText({ traceId, parentId: spanIdOf(run, 'run') }) };
}
