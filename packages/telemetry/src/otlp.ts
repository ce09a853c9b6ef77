// Spans and metrics in the JSON form of the OpenTelemetry protocol (OTLP/HTTP).

import type { Json, JsonObject } from '@drover/protocol/json';
import type { Histogram, HistogramPoint } from './metrics.ts';
import type { Span, Value } from './span.ts';

const KINDS = { internal: 1, client: 3 } as const;
const STATUS_ERROR = 2;
const CUMULATIVE = 2;

export type Resource = Readonly<Record<string, Value>>;

export function otlpTracesRequest(spans: readonly Span[], resource: Resource): JsonObject {
  const scopeSpans = [{ scope: { name: 'drover' }, spans: spans.map(otlpSpanJson) }];
  return { resourceSpans: [{ resource: { attributes: otlpAttributesJson(resource) }, scopeSpans }] };
}

export function otlpMetricsRequest(metrics: readonly Histogram[], resource: Resource): JsonObject {
  const scopeMetrics = [{ scope: { name: 'drover' }, metrics: metrics.map(otlpMetricJson) }];
  return { resourceMetrics: [{ resource: { attributes: otlpAttributesJson(resource) }, scopeMetrics }] };
}

function otlpSpanJson(span: Span): JsonObject {
  const { traceId, spanId, parentId, name, kind, startMs, endMs, attributes, error } = span;
  return {
    traceId,
    spanId,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: otlpNanos(startMs),
    endTimeUnixNano: otlpNanos(endMs),
    attributes: otlpAttributesJson(attributes),
    status: error === undefined ? {} : { code: STATUS_ERROR },
  };
}

function otlpMetricJson({ name, unit, bounds, points }: Histogram): JsonObject {
  const dataPoints = points.map((point) => otlpPointJson(point, bounds));
  return { name, unit, histogram: { aggregationTemporality: CUMULATIVE, dataPoints } };
}

function otlpPointJson({ attributes, startMs, endMs, values }: HistogramPoint, bounds: readonly number[]): JsonObject {
  const counts = Array.from({ length: bounds.length + 1 }, () => 0);
  for (const value of values) {
    const at = bounds.findIndex((bound) => value <= bound);
    const bucket = at === -1 ? bounds.length : at;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return {
    attributes: otlpAttributesJson(attributes),
    startTimeUnixNano: otlpNanos(startMs),
    timeUnixNano: otlpNanos(endMs),
    count: String(values.length),
    sum: values.reduce((sum, value) => sum + value, 0),
    min: Math.min(...values),
    max: Math.max(...values),
    bucketCounts: counts.map(String),
    explicitBounds: bounds,
  };
}

function otlpAttributesJson(attributes: Readonly<Record<string, Value>>): Json {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: otlpValueJson(value) }));
}

function otlpValueJson(value: Value): JsonObject {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((each) => ({ stringValue: each })) } };
}

// A number would lose the last digits.
function otlpNanos(ms: number): string {
  return `${Math.round(ms)}000000`;
}
