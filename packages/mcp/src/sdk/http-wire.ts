// The wire to a server over streamable HTTP.
//
// Guarantees
//   1. A message is bounded: a longer one ends its response.
//   2. A redirect is followed only within the origin that the user named, so headers with secrets go nowhere else.
//   3. A request whose response ends without an answer gets an error.
//   4. No message of the server holds a header of the entry or a token of its login.
//   5. A request that surely reached no tool fails with NotDeliveredError: the session has ended, or nothing listens.

import { bestEffort, pause } from '@drover/core/promises';
import { Redactor } from '@drover/core/redaction/redactor';
import { isSecretWorthHiding } from '@drover/core/redaction/secret-values';
import type { Json, JsonObject } from '@drover/protocol/json';
import { NotDeliveredError, type Wire } from '../wire.ts';
import type { HttpReach } from '../server-spec.ts';
import { boundedFetch } from './bounded-fetch.ts';
import { LoginNeededError, storedAuth } from './oauth/stored-auth.ts';
import type { LoginStore } from './oauth/stored-login.ts';

const GOODBYE_MS = 1_000;
const SCOPE_CHARS_MAX = 200;
// Errors of a connection that was never made.
const UNREACHED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

type Transport = InstanceType<typeof import('@modelcontextprotocol/client').StreamableHTTPClientTransport>;
type SendOptions = NonNullable<Parameters<Transport['send']>[1]>;

/** The place of a server's login, and the name of the server in the user's files. */
type Login = { readonly store: LoginStore; readonly server: string };

export async function openSdkHttpWire({ url, headers }: HttpReach, login?: Login): Promise<HttpWire> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const authProvider = login && storedAuth(login.store, login.server, boundedFetch);
  const requestInit = { headers: { ...headers } };
  const options = { requestInit, fetch: authProvider?.fetch ?? boundedFetch, ...(authProvider && { authProvider }) };
  return new HttpWire(new StreamableHTTPClientTransport(new URL(url), options), () => [
    ...Object.values(headers).flatMap((value) => [value, value.replace(/^\w+ +/, '')]),
    ...tokensOf(login?.store),
  ]);
}

function tokensOf(store: LoginStore | undefined): readonly string[] {
  const { tokens, client } = store?.read() ?? {};
  return [tokens?.access_token, tokens?.refresh_token, client?.client_secret].filter((each) => each !== undefined);
}

class HttpWire implements Wire {
  onmessage: Wire['onmessage'];
  onclose: Wire['onclose'];
  onerror: Wire['onerror'];
  readonly hasPerRequestStream = true;
  /** Why it ended, if it did. */
  why: string | undefined;
  readonly #inner: Transport;
  readonly #unanswered = new Set<Json>();
  readonly #secretsNow: () => readonly string[];
  /** Every secret that was ever sent, because tokens change. */
  readonly #secrets = new Set<string>();
  #redactor = new Redactor([], 'values only');

  constructor(inner: Transport, secretsNow: () => readonly string[]) {
    this.#inner = inner;
    this.#secretsNow = secretsNow;
    inner.onmessage = (message) => this.#take(message as unknown as JsonObject);
    inner.onclose = () => this.onclose?.();
    inner.onerror = (error) => this.onerror?.(error);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: JsonObject, options?: SendOptions): Promise<void> {
    const { id, method } = message;
    const isRequest = id !== undefined && method !== undefined;
    if (isRequest) this.#unanswered.add(id);
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.();
      if (isRequest) this.#giveUp(id);
    };
    const hadSession = this.#inner.sessionId !== undefined;
    this.#learnSecrets();
    try {
      await this.#inner.send(message as never, { ...options, onRequestStreamEnd });
    } catch (error) {
      if (isRequest) this.#unanswered.delete(id);
      throw this.#named(error, hadSession);
    }
  }

  async close(): Promise<void> {
    // A server that is gone or does not end sessions is left as it is.
    if (this.why === undefined) {
      const said = new AbortController();
      const goodbye = bestEffort(this.#inner.terminateSession()).finally(() => said.abort());
      await Promise.race([goodbye, pause(GOODBYE_MS, said.signal)]);
    }
    await this.#inner.close();
  }

  #take(message: JsonObject): void {
    if (message['method'] === undefined) this.#unanswered.delete(message['id'] ?? null);
    this.#learnSecrets();
    this.onmessage?.(this.#secrets.size === 0 ? message : this.#redactor.value(message));
  }

  #learnSecrets(): void {
    const fresh = this.#secretsNow().filter((value) => isSecretWorthHiding(value) && !this.#secrets.has(value));
    if (fresh.length === 0) return;
    for (const value of fresh) this.#secrets.add(value);
    this.#redactor = new Redactor(this.#secrets, 'values only');
  }

  /** Nothing more can come for the request. */
  #giveUp(id: Json): void {
    if (!this.#unanswered.has(id)) return;
    const message = 'the connection ended before the answer; the call may have taken effect';
    this.#take({ jsonrpc: '2.0', id, error: { code: -32000, message } });
  }

  #named(error: unknown, hadSession: boolean): unknown {
    if (!(error instanceof Error) || error instanceof LoginNeededError) return error;
    const { requiredScope } = error as { requiredScope?: unknown };
    if (typeof requiredScope === 'string') {
      const scope = JSON.stringify(requiredScope).slice(0, SCOPE_CHARS_MAX);
      return new LoginNeededError(`it wants more rights; name ${scope} as scope under oauth, and log in again`);
    }
    // The server may repeat what it was sent.
    error.message = this.#redactor.text(error.message);
    if (hadSession && hasEndedSession(error)) return this.#end('its session has ended', error);
    const code = connectionCode(error);
    if (UNREACHED.has(code)) return this.#end(`it cannot be reached (${code})`, error);
    return code === '' ? error : new Error(`the connection broke (${code}); the call may have taken effect`);
  }

  #end(why: string, cause: Error): NotDeliveredError {
    this.why = why;
    return new NotDeliveredError(why, { cause });
  }
}

/** By the protocol it is 404; some servers answer 400 and say what they miss. */
function hasEndedSession(error: Error): boolean {
  const { status, text = '' } = error as { status?: unknown; text?: unknown };
  return status === 404 || (status === 400 && /session/i.test(String(text)));
}

function connectionCode({ cause }: Error): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}
