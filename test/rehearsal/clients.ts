// The real SDKs and plain fetch, pointed at a rehearsal server that ends with the test.

import { onTestFinished } from 'vitest';
import type { Script } from '@drover/rehearsal/script';
import { startRehearsal, type Rehearsal, type RehearsalOptions } from '@drover/rehearsal/server';
// The SDKs are what the package is tested against, so they are its own development dependencies.
import Anthropic from '../../packages/rehearsal/node_modules/@anthropic-ai/sdk/index.mjs';
import OpenAI from '../../packages/rehearsal/node_modules/openai/index.mjs';

export { Anthropic, OpenAI };

export type Stage = { readonly server: Rehearsal; readonly anthropic: Anthropic; readonly openai: OpenAI };

export async function stage(script: Script, options: RehearsalOptions = {}): Promise<Stage> {
  const server = await startRehearsal(script, options);
  onTestFinished(() => server.close());
  return {
    server,
    anthropic: new Anthropic({ apiKey: 'key-for-rehearsal', baseURL: server.baseUrlFor('anthropic'), maxRetries: 0 }),
    openai: new OpenAI({ apiKey: 'key-for-rehearsal', baseURL: server.baseUrlFor('openai'), maxRetries: 0 }),
  };
}
