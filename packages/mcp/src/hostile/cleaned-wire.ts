// A wire that hands the client library only what it can read without harm.
//
// The library compiles output schemas (a regular expression in one can block the process for minutes), refuses a whole
// list for one invalid tool, and fails a call for content it does not know. So lists and results are read here, and
// the library sees a plain form of them.
//
// Guarantees
//   1. Every message is bounded in depth. An answer that is too deep becomes an error of its request.
//   2. At most twenty progress notices a second are passed on for each call.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import type { ToolOutput } from '@drover/core/tools/tool';
import type { Wire } from '../wire.ts';
import { type Listed, cleanListedTools } from './listed-tool.ts';
import { cleanMcpResult } from './result.ts';
import { isJsonDeeperThan } from './schema.ts';

const DEPTH_MAX = 100;
const NOTICE_EVERY_MS = 50;
const WAITING_MAX = 10_000;
const OUTPUTS_MAX = 256;

type Method = 'tools/list' | 'tools/call';

export class CleanedWire implements Wire {
  onmessage: Wire['onmessage'];
  onclose: Wire['onclose'];
  onerror: Wire['onerror'];
  readonly hasPerRequestStream?: boolean;
  readonly setProtocolVersion?: (version: string) => void;
  readonly setSupportedProtocolVersions?: (versions: string[]) => void;
  /** Lists as they were read, in the order of their pages. */
  readonly lists: Listed[] = [];
  /** Outputs of calls, by a number that replaces them. */
  readonly #outputs = new Map<number, ToolOutput>();
  readonly #inner: Wire;
  readonly #asked = new Map<Json, Method>();
  #count = 0;
  readonly #noticed = new Map<Json, number>();

  constructor(inner: Wire) {
    this.#inner = inner;
    if (inner.hasPerRequestStream !== undefined) this.hasPerRequestStream = inner.hasPerRequestStream;
    if (inner.setProtocolVersion) this.setProtocolVersion = (version) => inner.setProtocolVersion?.(version);
    if (inner.setSupportedProtocolVersions)
      this.setSupportedProtocolVersions = (versions) => inner.setSupportedProtocolVersions?.(versions);
    inner.onmessage = (message, extra) => this.#take(message, extra);
    inner.onclose = () => this.onclose?.();
    inner.onerror = (error) => this.onerror?.(error);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  send(message: JsonObject, options?: never): Promise<void> {
    const { id, method } = message;
    if (id !== undefined && (method === 'tools/list' || method === 'tools/call')) {
      this.#asked.set(id, method);
      // Requests without an answer are forgotten at last.
      const [oldest] = this.#asked.keys();
      if (this.#asked.size > WAITING_MAX && oldest !== undefined) this.#asked.delete(oldest);
    }
    return this.#inner.send(message, options);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Returns the output of a result of the library, once. */
  takeOutput(result: JsonObject): ToolOutput | undefined {
    const [part] = Array.isArray(result['content']) ? result['content'] : [];
    const number = isJsonObject(part) ? Number(part['text']) : Number.NaN;
    const output = this.#outputs.get(number);
    this.#outputs.delete(number);
    return output;
  }

  #take(message: JsonObject, extra: unknown): void {
    const cleaned = this.#cleaned(message);
    if (cleaned !== undefined) this.onmessage?.(cleaned, extra);
  }

  /** Undefined if the message is to be dropped. */
  #cleaned(message: JsonObject): JsonObject | undefined {
    const { id, method, result } = message;
    if (method === 'notifications/progress' && !this.#mayNotify(message['params'])) return undefined;
    const asked = id === undefined || method !== undefined ? undefined : this.#asked.get(id);
    if (asked !== undefined && id !== undefined) this.#asked.delete(id);
    if (asked === 'tools/list' && isJsonObject(result)) return this.#listed(message, result);
    if (isJsonDeeperThan(message, DEPTH_MAX)) {
      if (method !== undefined || id === undefined) return undefined;
      const error = { code: -32603, message: `the answer is nested deeper than ${DEPTH_MAX}` };
      return { jsonrpc: '2.0', id, error };
    }
    // With `resultType` a result of the newer protocol may be a question.
    const isQuestion = isJsonObject(result) && result['resultType'] === 'input_required';
    return asked === 'tools/call' && isJsonObject(result) && !isQuestion ? this.#called(message, result) : message;
  }

  #listed(message: JsonObject, result: JsonObject): JsonObject {
    const { tools: _, nextCursor, ...rest } = result;
    const listed = cleanListedTools(result['tools']);
    this.lists.push(listed);
    const tools = listed.tools.map(({ name }) => ({ name, inputSchema: { type: 'object' } }));
    const kept = Object.fromEntries(Object.entries(rest).filter(([, value]) => !isJsonDeeperThan(value, DEPTH_MAX)));
    return { ...message, result: { ...kept, tools, ...(typeof nextCursor === 'string' && { nextCursor }) } };
  }

  #called(message: JsonObject, result: JsonObject): JsonObject {
    const number = this.#count++;
    this.#outputs.set(number, cleanMcpResult(result));
    // The answer to a cancelled call is never taken.
    const [oldest] = this.#outputs.keys();
    if (this.#outputs.size > OUTPUTS_MAX && oldest !== undefined) this.#outputs.delete(oldest);
    const kind = result['resultType'] === undefined ? {} : { resultType: result['resultType'] };
    return { ...message, result: { ...kind, content: [{ type: 'text', text: String(number) }] } };
  }

  /** Whether the last notice of the same call was long enough ago. */
  #mayNotify(params: Json | undefined): boolean {
    const token = isJsonObject(params ?? null) ? ((params as JsonObject)['progressToken'] ?? null) : null;
    const now = performance.now();
    if (now - (this.#noticed.get(token) ?? -Infinity) < NOTICE_EVERY_MS) return false;
    this.#noticed.delete(token);
    this.#noticed.set(token, now);
    const [oldest] = this.#noticed.keys();
    if (this.#noticed.size > OUTPUTS_MAX && oldest !== undefined) this.#noticed.delete(oldest);
    return true;
  }
}
