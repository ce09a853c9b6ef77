// Metrics of a run, computed from its spans: histograms by the conventions for generative AI.

import type { Span, Value } from './span.ts';

const TOKEN_BOUNDS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864];
const SECOND_BOUNDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

export type Histogram = {
  readonly name: string;
  readonly unit: string;
  readonly bounds: readonly number[];
  readonly points: readonly HistogramPoint[];
};

export type HistogramPoint = {
  readonly attributes: Readonly<Record<string, Value>>;
  readonly startMs: number;
  readonly endMs: number;
  readonly values: readonly number[];
};

type Measured = { readonly span: Span; readonly value: number; readonly more?: Readonly<Record<string, Value>> };

export function metricsOfSpans(spans: readonly Span[]): readonly Histogram[] {
  const operation = (name: string) => spans.filter((span) => span.attributes['gen_ai.operation.name'] === name);
  const chats = operation('chat');
  const seconds = (span: Span): Measured => ({ span, value: (span.endMs - span.startMs) / 1_000 });
  const tokens = chats.flatMap((span) => [tokenMetricsOf(span, 'input'), tokenMetricsOf(span, 'output')].flat());
  const made = [
    metricHistogram('gen_ai.client.token.usage', '{token}', tokens),
    metricHistogram('gen_ai.client.operation.duration', 's', chats.map(seconds)),
    metricHistogram('gen_ai.invoke_agent.duration', 's', operation('invoke_agent').map(seconds)),
    metricHistogram('gen_ai.execute_tool.duration', 's', operation('execute_tool').map(seconds)),
  ];
  return made.filter(({ points }) => points.length > 0);
}

function tokenMetricsOf(span: Span, type: 'input' | 'output'): readonly Measured[] {
  const value = span.attributes[`gen_ai.usage.${type}_tokens`];
  return typeof value === 'number' ? [{ span, value, more: { 'gen_ai.token.type': type } }] : [];
}

const KEPT = [
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.tool.name',
  'gen_ai.agent.name',
  'error.type',
];

function metricHistogram(name: string, unit: string, measured: readonly Measured[]): Histogram {
  const groups = Map.groupBy(measured, ({ span, more }) => {
    const kept = KEPT.flatMap((key) => (span.attributes[key] === undefined ? [] : [[key, span.attributes[key]]]));
    return JSON.stringify([...kept, ...Object.entries(more ?? {})]);
  });
  const points = [...groups].map(([key, all]) => ({
    attributes: Object.fromEntries(JSON.parse(key) as [string, Value][]),
    startMs: Math.min(...all.map(({ span }) => span.startMs)),
    endMs: Math.max(...all.map(({ span }) => span.endMs)),
    values: all.map(({ value }) => value),
  }));
  return { name, unit, bounds: unit === 's' ? SECOND_BOUNDS : TOKEN_BOUNDS, points };
}
