// drover export otlp <id>: sends the trace and metrics of a run or session to a collector, from its journal.

import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import type { Recorded } from '@drover/protocol/events';
import { SpanFold } from '@drover/telemetry/fold';
import { metricsOfSpans } from '@drover/telemetry/metrics';
import { otlpMetricsRequest, otlpTracesRequest } from '@drover/telemetry/otlp';
import { sendTelemetryMetrics, sendTelemetrySpans } from '@drover/telemetry/send';
import { telemetrySettings, type TelemetrySettings } from '@drover/telemetry/settings';
import type { Span } from '@drover/telemetry/span';
import { defineCommand, flagOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { findRunOrSession, offerIdCompletions } from '../history/id.ts';
import { checkJournalUsable } from '../history/journal.ts';
import { readRunState } from '../history/run.ts';
import { readSessionState } from '../history/session.ts';
import { type Io, print } from '../io.ts';
import { errorCodeOf, stateFolder } from '../start/settings.ts';

export const exportCommand = defineCommand({
  word: { name: 'format', about: 'Format of the export: otlp', required: true, offered: () => ['otlp'] },
  second: {
    name: 'id',
    about: 'Run or session: its id or a unique prefix',
    required: false,
    offered: offerIdCompletions,
  },
  options: {
    endpoint: valueOption('Output:', 'URL', 'Collector (default: OTEL_EXPORTER_OTLP_ENDPOINT)', parseNonEmpty),
    out: valueOption('Output:', 'FILE', 'Write the trace to a file as JSON instead of sending it', parseNonEmpty),
    content: flagOption('Output:', 'Include messages, arguments and results'),
  },
  examples: [
    ['drover export otlp 1a2b3c --endpoint http://localhost:4318', 'Send the trace of a run to a collector'],
    ['drover export otlp 1a2b3c --out trace.json', 'Write it to a file'],
  ],
  async run({ word, second, endpoint, out, content }, io) {
    if (word !== 'otlp') throw new UsageError(`drover exports no '${word}'; write: drover export otlp RUN`);
    if (second === undefined) throw new UsageError('name a run or a session: drover export otlp RUN');
    const records = await readExportedRecords(second, io);
    const settings = exportSettings(endpoint, { content, isSent: out === undefined }, io);
    const spans = listExportedSpans(records, settings);
    if (spans.length === 0) throw new UsageError(`no span of ${second} has ended yet, so there is nothing to export`);
    if (out !== undefined) return writeExportedSpans(resolve(io.cwd, out), spans, settings);
    const problem = (await sendTelemetrySpans(spans, settings)) ?? (await sendTelemetryMetrics(spans, settings));
    if (problem !== undefined) throw new UsageError(`the export failed: ${problem}`);
    await print(io.stdout, `sent ${spans.length} spans of trace ${spans[0]?.traceId ?? ''}\n`);
    return exitCode.done;
  },
});

async function readExportedRecords(typed: string, io: Io): Promise<readonly Recorded[]> {
  const home = stateFolder(io);
  const { kind, id } = await findRunOrSession(home, typed);
  const kept = kind === 'run' ? await readRunState(home, id) : await readSessionState(home, id);
  checkJournalUsable(kept);
  const redactor = await diagnosticsRedactor(io);
  return redactor.value(kept.records as never) as unknown as readonly Recorded[];
}

type Wish = { readonly content: boolean; readonly isSent: boolean };

function exportSettings(endpoint: string | undefined, { content, isSent }: Wish, { env }: Io): TelemetrySettings {
  const own = endpoint === undefined ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'false' };
  const somewhere = isSent ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost' };
  const found = telemetrySettings({ ...somewhere, ...env, ...own });
  if (found === undefined)
    throw new UsageError('no collector is named: pass --endpoint, or set OTEL_EXPORTER_OTLP_ENDPOINT');
  if ('problem' in found) throw new UsageError(found.problem);
  return { ...found, content: content || found.content };
}

/** A span that a resumed run ended again counts as it ended last. */
function listExportedSpans(records: readonly Recorded[], settings: TelemetrySettings): readonly Span[] {
  const fold = new SpanFold(settings);
  const spans = new Map<string, Span>();
  for (const record of records) for (const span of fold.take(record)) spans.set(span.spanId, span);
  return [...spans.values()];
}

async function writeExportedSpans(
  path: string,
  spans: readonly Span[],
  { resource }: TelemetrySettings,
): Promise<number> {
  const request = { ...otlpTracesRequest(spans, resource), ...otlpMetricsRequest(metricsOfSpans(spans), resource) };
  await writeFile(path, `${JSON.stringify(request, undefined, 2)}\n`).catch((error: unknown) => {
    throw new UsageError(`--out: ${path} cannot be written (${errorCodeOf(error)})`, { cause: error });
  });
  return exitCode.done;
}
