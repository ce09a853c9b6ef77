// Cost of the journal: per step, per record of any length, and to resume from a long one.
// `node bench/journal.ts` measures nothing else.
//
// Most of the time is spent waiting for the disk, and disks differ, even from one second to the next. So each step is
// compared with the same work by hand: as many bytes are written and synced before each call, and as many again while
// the model is asked. Both run alternately, and each figure is the median of many steps. The target is still in
// milliseconds; drover's own share shows which side missed it.

import { mkdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Session } from '@drover/core/session/session';
import type { Store } from '@drover/core/bus';
import { Journal } from '@drover/core/journal/file/journal';
import { openSessionJournal } from '@drover/core/journal/session-journal';
import { wireApis } from '@drover/core/model/catalog';
import type { Provider } from '@drover/core/model/provider';
import { builtinTools } from '@drover/core/tools/builtin';
import { startRehearsal } from '@drover/rehearsal/server';
import { newFolder } from './folder.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
const ROUNDS = 25;
const STEPS = 20; // per round
const STEP_MS_AIM = 1.5;
// The records of one step: an answer with its call's intent, and the result.
const ANSWER_BYTES = 1_500;
const RESULT_BYTES = 900;
const RECORD = { v: 1, type: 'warning', message: 'x'.repeat(150) };

export async function lines(): Promise<readonly string[]> {
  const folder = newFolder();
  return [await perStep(folder), await perRecord(folder), await resuming(folder)];
}

async function perStep(folder: string): Promise<string> {
  const cwd = join(folder, 'cwd');
  mkdirSync(cwd);
  const [without, within, byHand]: [number[], number[], number[]] = [[], [], []];
  // The first rounds warm up the compiler.
  for (let round = -2; round < ROUNDS; round++) {
    const times = [
      await stepTimes(cwd, {}),
      await journalled(folder, `round${round}`, (store) => stepTimes(cwd, { store })),
      await synced(join(folder, `round${round}`), (sync) => stepTimes(cwd, { sync })),
    ] as const;
    if (round < 0) continue;
    without.push(...times[0]);
    within.push(...times[1]);
    byHand.push(...times[2]);
  }
  const added = median(within) - median(without);
  const bare = median(byHand) - median(without);
  return line(
    'journal, added per step',
    `${added.toFixed(2)} ms`,
    `aim ${STEP_MS_AIM} ms; by hand ${bare.toFixed(2)} ms, so ${(added - bare).toFixed(2)} ms are drover's own`,
    added <= STEP_MS_AIM,
  );
}

async function journalled<T>(home: string, id: string, measure: (store: Store) => Promise<T>): Promise<T> {
  const { store, close } = await openSessionJournal(home, id, HOOKS);
  try {
    return await measure(store);
  } finally {
    await close();
  }
}

type Sync = (size: number) => Promise<void>;

async function synced<T>(path: string, measure: (sync: Sync) => Promise<T>): Promise<T> {
  const file = await open(path, 'w+');
  let position = 0;
  const sync: Sync = async (size) => {
    await file.write(Buffer.alloc(size, 'x'), 0, size, position);
    position += size;
    await file.datasync();
  };
  try {
    return await measure(sync);
  } finally {
    await file.close();
  }
}

/** The time between requests, in ms. */
async function stepTimes(
  cwd: string,
  { store, sync = async () => undefined }: { readonly store?: Store; readonly sync?: Sync },
): Promise<readonly number[]> {
  const calls = [{ name: 'list', args: {} }];
  const server = await startRehearsal({
    answers: [...Array.from({ length: STEPS }, () => ({ calls })), { text: 'ok' }],
  });
  const timeouts = { headersMs: 9_999, firstByteMs: 9_999, silenceMs: 9_999, progressMs: 9_999 };
  const asked: number[] = [];
  let results = Promise.resolve();
  const { stream, ...rest } = await wireApis.anthropic({
    id: 'anthropic',
    apiKey: 'k',
    baseUrl: server.url,
    timeouts,
  });
  const provider: Provider = {
    ...rest,
    async *stream(request, signal) {
      asked.push(performance.now());
      results = sync(RESULT_BYTES);
      yield* stream(request, signal);
    },
  };
  const session = new Session({
    id: 's',
    worker: 0,
    provider,
    model: 'm',
    contextTokens: 1e6,
    outputTokensMax: 1_000,
    tools: builtinTools,
    context: { cwd, env: {}, outputFolder: cwd },
    limits: { stepsMax: 1_000, textCallRetriesMax: 2 },
    retry: { attemptsMax: 1, backoffMs: 1, backoffMsMax: 1, waitMsMax: 1, wallMsMax: 1 },
    judge: async () => {
      await results;
      await sync(ANSWER_BYTES);
      return { effect: 'allow', why: '' };
    },
    question: async () => ({ allowed: false, by: 'nobody', always: false }),
    pass: (event) => [event],
    ...(store && { store }),
  });
  await session.execute({ content: 'go' }, new AbortController().signal).result();
  await results;
  await server.close();
  return asked.slice(1).map((at, n) => at - (asked[n] ?? at));
}

async function perRecord(folder: string): Promise<string> {
  const journals = await Promise.all(
    [100, 100_000].map(async (length) => {
      const { journal } = await Journal.open({ path: join(folder, `${length}.jsonl`), session: 's', ...HOOKS });
      const hundred = Array.from({ length: 100 }, () => RECORD);
      for (let n = 0; n < length; n += 100) await journal.append(hundred, false);
      await journal.append([], true);
      return { journal, times: [] as number[] };
    }),
  );
  for (let n = 0; n < 200; n++) {
    for (const { journal, times } of journals) {
      const begun = performance.now();
      await journal.append([RECORD], true);
      times.push(performance.now() - begun);
    }
  }
  for (const { journal } of journals) await journal.close();
  const [early = 1, late = 1] = journals.map(({ times }) => median(times));
  return line(
    'journal, a record at 100,000 against one at 100',
    `${(late / early).toFixed(2)}x`,
    `${early.toFixed(2)} and ${late.toFixed(2)} ms, synced`,
    late / early < 2,
  );
}

async function resuming(folder: string): Promise<string> {
  const message = { role: 'user', content: [{ type: 'text', text: 'x'.repeat(300) }] };
  const { journal } = await Journal.open({
    path: join(folder, 'sessions', 'old', 'journal.jsonl'),
    session: 'old',
    ...HOOKS,
  });
  await journal.append([{ v: 1, seq: 1, type: 'session_start', model: 'a/b', cwd: '/' }], false);
  await journal.append(
    Array.from({ length: 10_000 }, (_, n) => ({ v: 1, seq: n + 2, turn: n, type: 'message_end', message })),
    true,
  );
  await journal.close();
  const begun = performance.now();
  const { past, close } = await openSessionJournal(folder, 'old', HOOKS);
  const ms = performance.now() - begun;
  await close();
  return line(
    'journal, 10,000 events read to go on',
    `${ms.toFixed(0)} ms`,
    'aim 2,000 ms',
    ms <= 2_000 && past?.messages.length === 10_000,
  );
}

function line(what: string, figure: string, note: string, isOk: boolean): string {
  return `${what.padEnd(50)} ${figure.padStart(10)}   (${note}) ${isOk ? 'ok' : 'OVER'}`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
