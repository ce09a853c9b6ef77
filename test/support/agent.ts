// An agent on the rehearsal server: the real SDK, the real loop, the real tools; only the model is scripted.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Shown } from '@drover/core/bus';
import { Session } from '@drover/core/session/session';
import type { ExecutionResult, Input } from '@drover/core/session/execution';
import type { SessionOptions } from '@drover/core/session/session-options';
import { newId } from '@drover/core/ids';
import { wireApis, type Api } from '@drover/core/model/catalog';
import type { Provider, StreamTimeouts } from '@drover/core/model/provider';
import type { RetryPolicy } from '@drover/core/model/retry';
import { builtinTools } from '@drover/core/tools/builtin';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { onTestFinished } from 'vitest';

export const APIS: readonly Api[] = ['anthropic', 'openai', 'openai-chat'];

/** Delays too short to notice, in their real order. */
export const quickRetry: RetryPolicy = {
  attemptsMax: 4,
  backoffMs: 5,
  backoffMsMax: 20,
  waitMsMax: 2_000,
  wallMsMax: 10_000,
};
export const patient: StreamTimeouts = {
  headersMs: 10_000,
  firstByteMs: 10_000,
  silenceMs: 10_000,
  progressMs: 10_000,
};

export const never = new AbortController().signal;

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function rehearsal(script: Script): Promise<Rehearsal> {
  const server = await startRehearsal(script);
  onTestFinished(() => server.close());
  return server;
}

export function providerOn(
  server: Pick<Rehearsal, 'baseUrlFor'>,
  api: Api,
  timeouts: StreamTimeouts = patient,
): Promise<Provider> {
  return wireApis[api]({ id: api, apiKey: 'test-key', baseUrl: server.baseUrlFor(api), timeouts });
}

export type Executed = { readonly events: readonly Shown[]; readonly result: ExecutionResult };

export type Rehearsed = {
  readonly server: Rehearsal;
  readonly session: Session;
  readonly cwd: string;
  readonly run: (input: string | Input, signal?: AbortSignal) => Promise<Executed>;
};

/** The first request goes to the first provider, all others to the second. */
function inTurn(first: Provider | undefined, others: Provider | undefined): Provider {
  if (first === undefined || others === undefined) throw new Error('both providers are needed');
  let isFirst = true;
  return {
    ...others,
    stream: (request, signal) => {
      const provider = isFirst ? first : others;
      isFirst = false;
      return provider.stream(request, signal);
    },
  };
}

export type Settings = Partial<SessionOptions> & {
  readonly api?: Api;
  readonly timeouts?: StreamTimeouts;
  readonly firstTimeouts?: StreamTimeouts; // for the first request alone
};

/** By default everything is allowed, and there is no terminal to ask on. */
export async function agentOn(script: Script, settings: Settings = {}): Promise<Rehearsed> {
  const { api = 'anthropic', timeouts = patient, firstTimeouts = timeouts, ...options } = settings;
  const server = await rehearsal(script);
  const [first, others] = await Promise.all([firstTimeouts, timeouts].map((each) => providerOn(server, api, each)));
  const cwd = options.context?.cwd ?? (await temporaryFolder());
  const session = new Session({
    id: newId('ses'),
    worker: 0,
    provider: inTurn(first, others),
    model: 'scripted',
    contextTokens: 200_000,
    outputTokensMax: 8_192,
    tools: builtinTools,
    context: { cwd, env: { PATH: process.env['PATH'] ?? '' }, outputFolder: join(cwd, '.outputs') },
    limits: { textCallRetriesMax: 2, stepsMax: 50 },
    retry: quickRetry,
    judge: async () => ({ effect: 'allow', why: 'a test' }),
    question: async () => ({ allowed: false, by: 'nobody', always: false, reason: 'nobody to ask' }),
    pass: (event) => [event],
    ...options,
  });
  const run = async (input: string | Input, signal: AbortSignal = never): Promise<Executed> => {
    const execution = session.execute(typeof input === 'string' ? { content: input } : input, signal);
    const events: Shown[] = [];
    for await (const event of execution) events.push(event);
    return { events, result: await execution.result() };
  };
  return { server, session, cwd, run };
}
