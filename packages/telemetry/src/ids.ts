// Ids of traces and spans. They derive from ids of the run, so every process and every export gives the same ones.

import { createHash } from 'node:crypto';

const TRACE_CHARS = 32;
const SPAN_CHARS = 16;

export type TraceParent = { readonly traceId: string; readonly parentId: string };

export function traceIdOf(owner: string): string {
  return spanIdDigest(['trace', owner], TRACE_CHARS);
}

export function spanIdOf(owner: string, ...parts: readonly (string | number)[]): string {
  return spanIdDigest(['span', owner, ...parts], SPAN_CHARS);
}

/** Parses a W3C traceparent; undefined for any other text. */
export function parseTraceParent(text: string | undefined): TraceParent | undefined {
  const [, traceId = '', parentId = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(text ?? '') ?? [];
  return traceId === '' || /^0+$/.test(traceId) || /^0+$/.test(parentId) ? undefined : { traceId, parentId };
}

export function traceParentText({ traceId, parentId }: TraceParent): string {
  return `00-${traceId}-${parentId}-01`;
}

function spanIdDigest(parts: readonly (string | number)[], chars: number): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, chars);
}
