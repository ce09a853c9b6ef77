// A session with remote tools, killed at every stage of waiting: nothing is lost or repeated.

import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { PendingCall, Recorded } from '@drover/protocol/events';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath } from '@drover/core/journal/session-journal';
import { defineTool } from '@drover/core/tools/tool';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { rehearsal, temporaryFolder } from '../support/agent.ts';
import { calls, keptSession, remote, type Kept } from '../support/serve/remote-session.ts';
import { story } from '../support/story.ts';

type Said = {
  readonly events: readonly Recorded[];
  readonly status?: string;
  readonly pending: readonly PendingCall[];
};

/** Starts a process, reads its output until it has reported its result, and kills it. */
async function untilKilled(args: readonly string[]): Promise<Said> {
  const child = spawn(process.execPath, ['test/support/serve/remote-child.ts', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const over = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await over;
  });
  const events: Recorded[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as Recorded | Omit<Said, 'events'>;
    if (!('pending' in said)) {
      events.push(said);
      continue;
    }
    child.kill('SIGKILL');
    await over;
    return { ...said, events };
  }
  throw new Error('the process ended before it had said what came of it');
}

test('local calls overlap, remote ones outlive every process, each event is there once', async () => {
  const home = await temporaryFolder();
  const ledger = join(home, 'ledger');
  const server = await rehearsal({
    order: 'conversation',
    answers: [
      {
        calls: [
          { name: 'remote', args: { what: 'first' } },
          { name: 'local', args: { line: 'a' } },
          { name: 'local', args: { line: 'b' } },
          { name: 'remote', args: { what: 'last' } },
        ],
      },
      { text: 'All four.' },
    ],
  });
  const process = (...deed: readonly string[]) => untilKilled([home, server.baseUrlFor('anthropic'), ledger, ...deed]);

  const first = await process(JSON.stringify({ role: 'user', content: 'go' }));
  expect([first.status, first.pending.map(({ args }) => args)]).toEqual([
    'awaiting_tool_execution',
    [{ what: 'first' }, { what: 'last' }],
  ]);
  const [one, last] = first.pending;

  const second = await process('deliver', JSON.stringify([{ callId: last?.callId, output: 'the last' }]));
  expect(second.pending).toEqual([one]);

  const third = await process(JSON.stringify([{ callId: one?.callId, output: 'the first' }]));
  expect([third.status, story(third.events).slice(1)]).toEqual([
    'completed',
    ['results remote ok, local ok, local ok, remote ok', 'model says All four. (stop)', 'done', 'session ends: done'],
  ]);
  const results = third.events.flatMap((event) =>
    event.type === 'message_end' && event.message.role === 'tool' ? event.message.results : [],
  );
  expect(results.map(({ output }) => output)).toEqual(['the first', 'wrote a', 'wrote b', 'the last']);

  const records = (await readJournalFile(journalPath(home, 's'))).records as unknown as readonly Recorded[];
  const ends = records.flatMap((record) => (record.type === 'tool_execution_end' ? [record.callIndex] : []));
  expect(ends.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  const seqs = records.flatMap((record) => (record.seq === undefined ? [] : [record.seq]));
  expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b));
  expect((await readFile(ledger, 'utf8')).trim().split('\n').toSorted()).toEqual(['a', 'b']);
  expect([server.requests.length, server.rejections]).toEqual([2, 0]);
});

const repeatable = defineTool({
  name: 'local',
  description: 'Runs here, as often as you like.',
  input: z.object({ n: z.number() }),
  access: 'none',
  subject: ({ n }) => `${n}`,
  repeatable: true,
  run: async ({ n }) => `local ${n}`,
});
const SCRIPT = {
  answers: [calls('remote', 'local', 'remote'), calls('remote'), { text: 'Done.' }],
};

/** Answers the pending calls one by one, until the session ends. */
async function carriedOn(kept: Kept): Promise<void> {
  const { session, run } = kept;
  if (session.conversation.messages.length === 0) await run('go');
  for (let rounds = 0; rounds < 10; rounds++) {
    // Results are delivered last call first, so their order differs from that of the message.
    const call = session.pending.at(-1);
    if (call !== undefined) await session.deliver([{ callId: call.callId, output: `remote ${call.callIndex}` }]);
    else if ((await run({ resume: true }).catch(() => undefined)) === undefined) return;
  }
}

/** Without ids and other values that differ between runs. */
function spokenIn({ session }: Kept): readonly unknown[] {
  return session.conversation.messages.map((message) =>
    message.role === 'tool'
      ? message.results.map(({ name, output, isError }) => [name, output, isError])
      : message.content.map((part) => (part.type === 'tool_call' ? [part.name, part.args] : part)),
  );
}

test('after a crash at any record every call has one result and history is the same', async () => {
  const home = await temporaryFolder();
  const settings = { tools: [repeatable, remote] };
  const whole = await keptSession(home, SCRIPT, settings);
  await carriedOn(whole);
  const spoken = spokenIn(whole);
  await whole.die();
  const lines = (await whole.bytes()).trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(30);

  for (let kept = 1; kept < lines.length; kept++) {
    await writeFile(journalPath(home, 's'), `${lines.slice(0, kept).join('\n')}\n`);
    const life = await keptSession(home, SCRIPT, settings);
    await carriedOn(life);
    expect(spokenIn(life)).toEqual(spoken);
    const ends = (await life.records()).flatMap((record) =>
      record.type === 'tool_execution_end' ? [record.output] : [],
    );
    expect(ends.toSorted()).toEqual(['local 1', 'remote 0', 'remote 0', 'remote 2']);
    expect(life.server.rejections).toBe(0);
    await life.die();
  }
});
