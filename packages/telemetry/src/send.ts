// Sends OTLP requests over HTTP. A collector that is slow or away costs a bounded time, and never an error of the run.

import type { JsonObject } from '@drover/protocol/json';
import { metricsOfSpans } from './metrics.ts';
import { otlpMetricsRequest, otlpTracesRequest } from './otlp.ts';
import type { Target, TelemetrySettings } from './settings.ts';
import type { Span } from './span.ts';

const SPANS_A_REQUEST = 500;
const TRIES = 3;
const TEMPORARY = [429, 502, 503, 504];
const PAUSE_MS = 500;

/** Sends all spans. Returns a sentence about what was not taken; undefined if all was. */
export async function sendTelemetrySpans(
  spans: readonly Span[],
  settings: TelemetrySettings,
): Promise<string | undefined> {
  const { traces, resource } = settings;
  if (traces === undefined) return undefined;
  for (let at = 0; at < spans.length; at += SPANS_A_REQUEST) {
    const problem = await postTelemetry(
      traces,
      otlpTracesRequest(spans.slice(at, at + SPANS_A_REQUEST), resource),
      settings,
    );
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Sends the metrics of all spans of a run. */
export async function sendTelemetryMetrics(
  spans: readonly Span[],
  settings: TelemetrySettings,
): Promise<string | undefined> {
  const { metrics, resource } = settings;
  const histograms = metricsOfSpans(spans);
  if (metrics === undefined || histograms.length === 0) return undefined;
  return postTelemetry(metrics, otlpMetricsRequest(histograms, resource), settings);
}

async function postTelemetry(
  target: Target,
  body: JsonObject,
  { timeoutMs }: TelemetrySettings,
): Promise<string | undefined> {
  const deadline = AbortSignal.timeout(timeoutMs);
  for (let left = TRIES; ; left -= 1) {
    const answer = await postTelemetryOnce(target, body, deadline);
    if (answer === undefined) return undefined;
    if (left <= 1 || !answer.isTemporary || deadline.aborted) return answer.problem;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

type Refused = { readonly problem: string; readonly isTemporary: boolean };

async function postTelemetryOnce(
  { url, headers }: Target,
  body: JsonObject,
  signal: AbortSignal,
): Promise<Refused | undefined> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      // A redirect could carry the headers to another host.
      redirect: 'error',
      signal,
    });
    await answer.body?.cancel();
    if (answer.ok) return undefined;
    return {
      problem: `the collector at ${url} answered ${answer.status}`,
      isTemporary: TEMPORARY.includes(answer.status),
    };
  } catch (error) {
    const why =
      error instanceof Error ? (error.cause instanceof Error ? error.cause.message : error.message) : String(error);
    return { problem: `the collector at ${url} cannot be reached (${why})`, isTemporary: !signal.aborted };
  }
}
