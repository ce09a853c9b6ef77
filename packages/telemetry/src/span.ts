// A span as data, before it has the form of a protocol.

export type Value = string | number | boolean | readonly string[];

export type Span = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly name: string;
  readonly kind: 'internal' | 'client';
  readonly startMs: number; // since 1970
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, Value>>;
  /** Why it failed; absent if it did not. */
  readonly error?: string;
};
