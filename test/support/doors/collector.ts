// A collector for tests: a real HTTP server that checks every request against the published schema of OTLP.
//
// The schema is the descriptor of opentelemetry-proto 1.45.0. The JSON form of OTLP writes ids in hexadecimal, where
// Protobuf's JSON has base64, so ids are checked and converted first.

import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { createFileRegistry, fromBinary, fromJson, toJson, type JsonValue } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { onTestFinished } from 'vitest';

const descriptor = new URL('../../recordings/otlp/opentelemetry-proto.binpb', import.meta.url);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptor)));

const SCHEMAS: Readonly<Record<string, string>> = {
  '/v1/traces': 'opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest',
  '/v1/metrics': 'opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest',
};

export type SentSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number };
};

/** Throws if the request does not fit the schema. Returns it as Protobuf writes it. */
export function checkRequest(path: string, body: unknown): JsonValue {
  const schema = registry.getMessage(SCHEMAS[path] ?? '');
  if (schema === undefined) throw new Error(`no schema for ${path}`);
  return toJson(schema, fromJson(schema, withBase64Ids(body), { ignoreUnknownFields: false }));
}

const ID_BYTES: Readonly<Record<string, number>> = { traceId: 16, spanId: 8, parentSpanId: 8 };

function withBase64Ids(value: unknown): JsonValue {
  if (Array.isArray(value)) return value.map(withBase64Ids);
  if (typeof value !== 'object' || value === null) return value as JsonValue;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      const bytes = ID_BYTES[key];
      if (bytes === undefined) return [key, withBase64Ids(each)];
      if (typeof each !== 'string' || !new RegExp(`^[0-9a-f]{${bytes * 2}}$`).test(each))
        throw new Error(`${key} is ${String(each)}`);
      return [key, Buffer.from(each, 'hex').toString('base64')];
    }),
  );
}

export class Collector {
  readonly problems: string[] = [];
  readonly headers: Readonly<Record<string, unknown>>[] = [];
  readonly metrics: unknown[] = [];
  readonly #spans = new Map<string, SentSpan>();
  readonly #server: Server;
  /** The status of the next answers; 200 when empty. */
  readonly statuses: number[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      void json(request).then((body) => {
        const status = this.statuses.shift() ?? 200;
        if (status === 200) this.#take(request.url ?? '', body, request.headers);
        response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
      });
    });
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void collector.#server.close());
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The spans by id; one that was sent again counts as it was sent last. */
  get spans(): readonly SentSpan[] {
    return [...this.#spans.values()].toSorted((a, b) => (a.spanId < b.spanId ? -1 : 1));
  }

  #take(path: string, body: unknown, headers: Readonly<Record<string, unknown>>): void {
    this.headers.push(headers);
    try {
      checkRequest(path, body);
    } catch (error) {
      this.problems.push(`${path}: ${String(error)}`);
    }
    if (path === '/v1/metrics') this.metrics.push(body);
    const { resourceSpans = [] } = body as { resourceSpans?: { scopeSpans: { spans: SentSpan[] }[] }[] };
    for (const { scopeSpans } of resourceSpans)
      for (const { spans } of scopeSpans) for (const span of spans) this.#spans.set(span.spanId, span);
  }
}
