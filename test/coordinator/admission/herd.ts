// Many agents on one rehearsal server that share one admission: real SDKs, real loops, one process.

import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { Session } from '@drover/core/session/session';
import type { ExecutionResult } from '@drover/core/session/execution';
import type { Event, Place } from '@drover/protocol/events';
import { newId } from '@drover/core/ids';
import type { Api, Price } from '@drover/core/model/catalog';
import type { RetryPolicy } from '@drover/core/model/retry';
import { defineTool } from '@drover/core/tools/tool';
import { NOTHING_SPENT, type PurseOptions } from '@drover/coordinator/admission/purse';
import { RunAdmission } from '@drover/coordinator/admission/admission';
import { Throttle } from '@drover/coordinator/admission/throttle';
import type { Rehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { z } from 'zod';
import { never, patient, providerOn, rehearsal, temporaryFolder } from '../../support/agent.ts';

const echo = defineTool({
  name: 'echo',
  description: 'Says it back after a while.',
  input: z.object({ text: z.string(), ms: z.number().default(0) }),
  access: 'none',
  subject: ({ text }) => text,
  async run({ text, ms }, { signal }) {
    await sleep(ms, undefined, { signal });
    return text;
  },
});

const retry: RetryPolicy = { attemptsMax: 8, backoffMs: 5, backoffMsMax: 20, waitMsMax: 5_000, wallMsMax: 60_000 };

export type Told = { readonly event: Event; readonly place: Place };

export type HerdOptions = Partial<Omit<PurseOptions, 'models'>> & {
  readonly price?: Price;
  readonly api?: Api;
  readonly parallelMax?: number;
  readonly outputTokensMax?: number;
  readonly idleMs?: number; // per agent
  readonly onEvent?: (event: Event) => void;
};

export type Herd = {
  readonly server: Rehearsal;
  readonly admission: RunAdmission;
  readonly told: readonly Told[]; // events of the admission
  /** Starts all agents at once, each with its number in its prompt. */
  readonly run: (agents: number) => Promise<readonly ExecutionResult[]>;
  readonly agent: (worker: number, signal?: AbortSignal) => Promise<ExecutionResult>;
};

export async function herdOn(script: Script, options: HerdOptions = {}): Promise<Herd> {
  const { api = 'anthropic', parallelMax = 64, outputTokensMax = 1_024, idleMs, onEvent, price, ...purse } = options;
  const server = await rehearsal(script);
  const provider = await providerOn(server, api, patient);
  const cwd = await temporaryFolder();
  const told: Told[] = [];
  const throttle = new Throttle({ waitMsMax: 10_000, random: Math.random });
  const admission = new RunAdmission({
    before: NOTHING_SPENT,
    ...purse,
    models: new Map([
      [
        `${provider.id}/scripted`,
        { lane: throttle.open('a lane', parallelMax).lane, ...(price !== undefined && { price }) },
      ],
    ]),
    settled: async () => undefined,
    emit: (event, place) => {
      told.push({ event, place });
      onEvent?.(event);
    },
  });
  const agent = async (worker: number, signal: AbortSignal = never): Promise<ExecutionResult> => {
    const session = new Session({
      id: newId('ses'),
      worker,
      provider,
      model: 'scripted',
      contextTokens: 200_000,
      outputTokensMax,
      ...(price !== undefined && { price }),
      admission: admission.admissionFor({ worker, task: `t${worker}`, attempt: 1 }),
      tools: [echo],
      context: { cwd, env: {}, outputFolder: join(cwd, '.outputs') },
      limits: { textCallRetriesMax: 2, stepsMax: 50, ...(idleMs !== undefined && { idleMs }) },
      retry,
      judge: async () => ({ effect: 'allow', why: 'a test' }),
      question: async () => ({ allowed: false, by: 'nobody', always: false }),
      pass: (event) => [event],
    });
    return session.run({ content: `Do task ${worker}.` }, signal);
  };
  const run = (agents: number) => Promise.all(Array.from({ length: agents }, (_, at) => agent(at + 1)));
  return { server, admission, told, run, agent };
}

/** The times at which requests reached the server, in order. */
export function arrivals({ requests }: Rehearsal): readonly number[] {
  return requests.map(({ at }) => at).sort((a, b) => a - b);
}

export function refusals({ requests }: Rehearsal): number {
  return requests.filter(({ status }) => status === 429).length;
}

/** The most concurrent requests, among those that arrived after the first answer. */
export function mostInFlight({ requests }: Rehearsal): number {
  const first = Math.min(...requests.map(({ closedAt }) => closedAt ?? Infinity));
  const later = requests.filter(({ at }) => at >= first);
  return Math.max(
    ...later.map(({ at }) => later.filter((other) => other.at <= at && (other.closedAt ?? Infinity) > at).length),
  );
}
