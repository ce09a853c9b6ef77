// The real SDKs and plain fetch, on a rehearsal server that ends with the test.

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { onTestFinished } from 'vitest';
import { showRehearsalValue, type Json, type JsonObject } from '@drover/rehearsal/json';
import type { Script } from '@drover/rehearsal/script';
import { startRehearsal, type Rehearsal, type RehearsalOptions } from '@drover/rehearsal/server';
import type { Api } from '@drover/rehearsal/wire/wire';

export const APIS: readonly Api[] = ['anthropic', 'openai', 'openai-chat'];

const PATHS: Record<Api, string> = {
  anthropic: '/v1/messages',
  openai: '/v1/responses',
  'openai-chat': '/v1/chat/completions',
};

export type Stage = { readonly server: Rehearsal; readonly anthropic: Anthropic; readonly openai: OpenAI };

export async function stage(script: Script, options: RehearsalOptions = {}): Promise<Stage> {
  const server = await startRehearsal(script, options);
  onTestFinished(() => server.close());
  const quiet = { maxRetries: 0, logLevel: 'off' } as const;
  return {
    server,
    anthropic: new Anthropic({ apiKey: 'key-for-rehearsal', baseURL: server.baseUrlFor('anthropic'), ...quiet }),
    openai: new OpenAI({ apiKey: 'key-for-rehearsal', baseURL: server.baseUrlFor('openai'), ...quiet }),
  };
}

/** The smallest request that each API accepts. */
export function requestFor(api: Api, more: JsonObject = {}, text = 'go'): JsonObject {
  switch (api) {
    case 'anthropic':
      return { model: 'm', max_tokens: 99, messages: [{ role: 'user', content: text }], ...more };
    case 'openai':
      return { model: 'm', input: text, ...more };
    case 'openai-chat':
      return { model: 'm', messages: [{ role: 'user', content: text }], ...more };
  }
}

export type Sent = {
  readonly body: JsonObject | string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
};

export async function send(server: Rehearsal, api: Api, { body, headers = {}, signal }: Sent): Promise<Response> {
  return await fetch(server.url + PATHS[api], {
    method: 'POST',
    redirect: 'manual',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
}

export async function post(
  server: Rehearsal,
  api: Api,
  body: JsonObject | string,
): Promise<{ readonly status: number; readonly json: Json }> {
  const response = await send(server, api, { body });
  return { status: response.status, json: (await response.json()) as Json };
}

/** The data of each event of a stream, parsed if it is JSON. */
export function dataIn(stream: string): readonly Json[] {
  return stream
    .split(/\r\n\r\n|\n\n|\r\r/)
    .flatMap((event) => {
      const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data: '));
      return lines.length === 0 ? [] : [lines.map((line) => line.slice('data: '.length)).join('\n')];
    })
    .map((data) => (data.startsWith('{') && data.endsWith('}') ? (JSON.parse(data) as Json) : data));
}

/** The value at a path such as `error.message`. */
export function at(value: Json | undefined, path: string): Json | undefined {
  return path
    .split('.')
    .reduce<Json | undefined>(
      (inner, key) => (typeof inner === 'object' && inner !== null ? (inner as Record<string, Json>)[key] : undefined),
      value,
    );
}

/** The same value as text for an error message; empty if it is absent. */
export function textAt(value: Json | undefined, path: string): string {
  const found = at(value, path);
  return found === undefined || found === null ? '' : showRehearsalValue(found);
}
