// A task on the rehearsal server, and a run that records what it is told.

import { fileURLToPath } from 'node:url';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Question } from '@drover/core/agent/calls/calls';
import type { Decision, Event, Place } from '@drover/protocol/events';
import type { Admission, Seen, Wanted } from '@drover/core/model/spending/admission';
import { anthropicProvider } from '@drover/core/model/providers/anthropic';
import type { Provider } from '@drover/core/model/provider';
import type { Usage } from '@drover/protocol/messages';
import { askForTaskHere } from '@drover/core/task/asking';
import type { Price } from '@drover/core/model/catalog';
import type { TaskLink } from '@drover/core/task/link';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { Displaced, ModelSpec, TaskSpec } from '@drover/core/task/task';
import { NO_SERVERS } from '@drover/core/tools/served/tool-servers';
import { builtinRunDefinitions } from '@drover/core/tools/builtin';
import type { Rehearsal } from '@drover/rehearsal/server';
import { type Pool, openPool, type PoolOptions } from '@drover/coordinator/pool/pool';
import { onTestFinished } from 'vitest';
import { patient, providerOn, quickRetry, temporaryFolder } from './agent.ts';

// Threads that run from source start twice as fast if the types are already stripped.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'node-compile-cache');

export const workerEntry = fileURLToPath(new URL('../../packages/worker/src/entry.ts', import.meta.url));

// The key of a request tells which task it belongs to.
const servers = new Map<string, Provider>();

export const provider: Provider = {
  ...anthropicProvider({ id: 'anthropic', apiKey: 'none', timeouts: patient }),
  stream: (request, signal) => {
    const found = servers.get(request.cacheKey.replace(/-summary$/, ''));
    if (found === undefined) throw new Error(`a request with the key ${request.cacheKey}, and no task has it`);
    return found.stream(request, signal);
  },
};

export function scripted(contextTokens: number): ModelSpec {
  const { id, limits } = provider;
  return { provider: { id, limits }, name: 'scripted', contextTokens, outputTokensMax: 8_192 };
}

/** A task in its own folder, on the scripted model, with everything allowed. */
export async function taskOn(
  server: Pick<Rehearsal, 'baseUrlFor'>,
  prompt: string,
  overrides: Partial<TaskSpec> = {},
): Promise<TaskSpec> {
  const folder = await temporaryFolder();
  const cacheKey = `run_test_${servers.size}`;
  servers.set(cacheKey, await providerOn(server, 'anthropic'));
  return {
    run: 'run_test',
    task: 'one',
    attempt: 1,
    worker: 1,
    mode: 'write',
    model: scripted(200_000),
    system: 'You are an agent.',
    tools: builtinRunDefinitions(),
    served: [],
    seed: [],
    begin: { content: prompt },
    workspace: folder,
    env: { PATH: process.env['PATH'] ?? '' },
    ignore: [],
    outputFolder: join(folder, '.outputs'),
    limits: { stepsMax: 50, textCallRetriesMax: 2 },
    retry: quickRetry,
    policy: { rules: [], yes: true, contained: false },
    cacheKey,
    ...overrides,
  };
}

const NOBODY = { cwd: '/', sandbox: undefined, emit: () => undefined, question: async () => undefined };

export type Told = { readonly event: Event; readonly at: Pick<Place, 'turn' | 'step'> };
export type Settlement = { readonly usage: Usage; readonly seen: Seen };

export type Listener = {
  readonly link: TaskLink;
  readonly told: Told[];
  readonly events: () => readonly Event[];
  readonly wanted: Wanted[];
  readonly settlements: Settlement[];
  readonly questions: Question[];
  /** The first event that matches, as soon as it is reported. */
  readonly heard: (type: Event['type']) => Promise<Event>;
};

/** The parts of a run that a test replaces. */
export type RunParts = Partial<Pick<TaskLink, 'settled' | 'question' | 'mail'>> & {
  readonly admission?: Admission;
  readonly stream?: Provider['stream'];
  readonly price?: { readonly price: Price };
};

export function listener(overrides: RunParts = {}): Listener {
  const told: Told[] = [];
  const wanted: Wanted[] = [];
  const settlements: Settlement[] = [];
  const questions: Question[] = [];
  const awaited = new Map<Event['type'], PromiseWithResolvers<Event>>();
  const heard = (type: Event['type']) => {
    const waiting = awaited.get(type) ?? Promise.withResolvers<Event>();
    awaited.set(type, waiting);
    return waiting.promise;
  };
  const admission: Admission = {
    admit: async (asked) => {
      wanted.push(asked);
      return {
        outputTokensMax: asked.outputTokensMax,
        settle: (usage, seen) => void settlements.push({ usage, seen }),
      };
    },
  };
  const question = async (asked: Question): Promise<Decision> => {
    questions.push(asked);
    return { allowed: false, by: 'nobody', always: false, reason: 'nobody to ask' };
  };
  const models = overrides.stream === undefined ? provider : { ...provider, stream: overrides.stream };
  const route = { provider: models, model: 'scripted', contextTokens: 200_000, outputTokensMax: 8_192 };
  const link: TaskLink = {
    emit: (event, at) => {
      told.push({ event, at });
      void heard(event.type);
      awaited.get(event.type)?.resolve(event);
    },
    settled: overrides.settled ?? (async () => undefined),
    ask: (order, hooks, signal) =>
      askForTaskHere(
        order,
        { route: { ...route, ...overrides.price }, admission: overrides.admission ?? admission, hooks },
        signal,
      ),
    question: overrides.question ?? question,
    callServed: NO_SERVERS.lineFor(NOBODY).call,
    mail: overrides.mail ?? { onMessage: () => undefined, delivered: () => undefined },
  };
  return { link, told, events: () => told.map(({ event }) => event), wanted, settlements, questions, heard };
}

export function poolOf(options: Partial<PoolOptions> = {}): Pool {
  const pool = openPool({ entry: workerEntry, threadsMax: 2, onDiagnostic: () => undefined, ...options });
  onTestFinished(() => pool.close());
  return pool;
}

/** The outcome of an attempt that was not displaced. */
export async function ended(running: Promise<TaskOutcome | Displaced>): Promise<TaskOutcome> {
  const outcome = await running;
  if (outcome.status === 'displaced') throw new Error(`displaced: ${outcome.why}`);
  return outcome;
}

/** Masks values that differ between runs: ids, times, and the lengths of deltas. */
export function comparable(told: readonly Told[]): readonly unknown[] {
  const ids = new Map<string, string>();
  const named = (id: string): string => {
    const name = ids.get(id) ?? `${id.split('_')[0] ?? ''}-${ids.size + 1}`;
    ids.set(id, name);
    return name;
  };
  const plain = (value: unknown): unknown =>
    JSON.parse(
      JSON.stringify(value)
        .replaceAll(/\b(?:call|ask)_[0-9a-f]+/g, named)
        .replaceAll(/"durationMs":\d+/g, '"durationMs":0'),
    );
  return joinedDeltas(told).map(plain);
}

function joinedDeltas(told: readonly Told[]): readonly Told[] {
  const joined: Told[] = [];
  for (const { event, at } of told) {
    const last = joined.at(-1)?.event;
    const goesOn = last !== undefined && 'delta' in last && 'delta' in event && last.type === event.type;
    if (goesOn) joined[joined.length - 1] = { event: { ...last, delta: last.delta + event.delta }, at };
    else joined.push({ event, at });
  }
  return joined;
}
