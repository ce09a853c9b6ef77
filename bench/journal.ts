// What the journal costs: per step, per record however long it is, and to go on from a long one.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Session } from '@drover/core/agent/session';
import type { Store } from '@drover/core/bus';
import { Journal } from '@drover/core/journal/journal';
import { openSessionJournal } from '@drover/core/journal/session-journal';
import { wireApis } from '@drover/core/model/catalog';
import { builtinTools } from '@drover/core/tools/builtin';
import { startRehearsal } from '@drover/rehearsal/server';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
const STEPS = 100;
const RECORD = { v: 1, type: 'warning', message: 'x'.repeat(150) };

export async function journalLines(): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-bench-'));
  try {
    return [await perStep(folder), await perRecord(folder), await resuming(folder)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function perStep(folder: string): Promise<string> {
  const added: number[] = [];
  for (let n = 0; n < 5; n++) {
    const without = await stepMs(folder, undefined);
    const { store, close } = await openSessionJournal(folder, `step${n}`, HOOKS);
    const within = await stepMs(folder, store);
    await close();
    added.push(within - without);
  }
  return line('journal, added per step', `${median(added).toFixed(2)} ms`, 'aim 1.5 ms', median(added) <= 1.5);
}

async function stepMs(cwd: string, store: Store | undefined): Promise<number> {
  const calls = [{ name: 'list', args: {} }];
  const server = await startRehearsal({
    answers: [...Array.from({ length: STEPS }, () => ({ calls })), { text: 'ok' }],
  });
  const timeouts = { headersMs: 9_999, firstByteMs: 9_999, silenceMs: 9_999, progressMs: 9_999 };
  const session = new Session({
    id: 's',
    worker: 0,
    provider: await wireApis.anthropic({ id: 'anthropic', apiKey: 'k', baseUrl: server.url, timeouts }),
    model: 'm',
    contextTokens: 1e6,
    outputTokensMax: 1_000,
    tools: builtinTools,
    context: { cwd, env: {}, outputFolder: cwd },
    limits: { stepsMax: 1_000, textCallRetriesMax: 2 },
    retry: { attemptsMax: 1, backoffMs: 1, backoffMsMax: 1, waitMsMax: 1, wallMsMax: 1 },
    judge: async () => ({ effect: 'allow', why: '' }),
    question: async () => ({ allowed: false, by: 'nobody', always: false }),
    pass: (event) => [event],
    ...(store && { store }),
  });
  const begun = performance.now();
  await session.execute({ content: 'go' }, new AbortController().signal).result();
  const ms = (performance.now() - begun) / STEPS;
  await server.close();
  return ms;
}

async function perRecord(folder: string): Promise<string> {
  const { journal } = await Journal.open({ path: join(folder, 'long.jsonl'), session: 's', ...HOOKS });
  const costs: number[] = [];
  const appendMany = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += 100)
      await journal.append(
        Array.from({ length: 100 }, () => RECORD),
        false,
      );
  };
  for (const upTo of [100, 100_000]) {
    await appendMany(upTo);
    const begun = performance.now();
    for (let n = 0; n < 200; n++) await journal.append([RECORD], true);
    costs.push((performance.now() - begun) / 200);
  }
  await journal.close();
  const [early = 1, late = 1] = costs;
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
