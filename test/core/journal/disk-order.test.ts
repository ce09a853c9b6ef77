// Steps that wait for the disk, and steps that do not, on a disk that a test can stall.

import { appendFile, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bus, type Shown } from '@drover/core/bus';
import { Journal, readJournalFile, type JournalFile } from '@drover/core/journal/file/journal';
import { Recorder } from '@drover/core/journal/recorder';
import { defineTool } from '@drover/core/tools/tool';
import type { Script } from '@drover/rehearsal/script';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { agentOn, never, temporaryFolder } from '../../support/agent.ts';
import { until } from '../../support/until.ts';

// Long enough for every operation that does not wait for the disk.
const WHILE_MS = 150;

type Disk = {
  readonly file: (path: string) => Promise<JournalFile>;
  readonly goOn: () => void;
  readonly stopped: Promise<void>;
};

/** Stalls the sync of a write that contains this text. */
function stoppingDisk(stopsAt: string): Disk {
  const [stopped, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  return {
    stopped: stopped.promise,
    goOn: going.resolve,
    async file(path) {
      const file = await open(path, 'w+');
      let last = '';
      return {
        async write(bytes: Buffer, at: number, length: number, position: number) {
          last = bytes.toString();
          return file.write(bytes, at, length, position);
        },
        async datasync() {
          if (last.includes(stopsAt)) {
            stopped.resolve();
            await going.promise;
          }
          await file.datasync();
        },
        truncate: (size) => file.truncate(size),
        close: () => file.close(),
      } as JournalFile;
    },
  };
}

async function sessionOn(disk: Disk, script: Script) {
  const folder = await temporaryFolder();
  const path = join(folder, 'journal.jsonl');
  const hooks = { onTrouble: () => undefined, onRecovery: () => undefined };
  const { journal } = await Journal.open({ path, session: 's', ...hooks, openFile: disk.file });
  const ledger = defineTool({
    name: 'ledger',
    description: 'Writes a line.',
    input: z.object({ line: z.string() }),
    access: 'none',
    subject: ({ line }) => line,
    async run({ line }) {
      await appendFile(join(folder, 'ledger'), `${line}\n`);
      return `wrote ${line}`;
    },
  });
  const store = new Recorder({ journal, diagnose: () => undefined });
  const agent = await agentOn(script, { id: 's', store, tools: [ledger] });
  const told: Shown[] = [];
  const begin = (signal: AbortSignal = never) => {
    const execution = agent.session.execute({ content: 'go' }, signal);
    void (async () => {
      for await (const event of execution) told.push(event);
    })();
    return execution.result();
  };
  const effects = () => readFile(join(folder, 'ledger'), 'utf8').catch(() => '');
  return { ...agent, begin, told, effects, path, close: () => journal.close() };
}

const writes = (line: string) => ({ calls: [{ name: 'ledger', args: { line } }] });

test('no request is sent while the user’s message is not durable', async () => {
  const disk = stoppingDisk('"role":"user"');
  const { begin, server, told, close } = await sessionOn(disk, { answers: [{ text: 'ok' }] });
  const running = begin();
  await disk.stopped;
  await sleep(WHILE_MS);
  expect([server.requests.length, told.map(({ type }) => type)]).toEqual([0, ['session_start']]);
  disk.goOn();
  expect((await running).outcome).toEqual({ status: 'done' });
  await close();
});

test('no call runs while its intent is not durable', async () => {
  const disk = stoppingDisk('"type":"tool_execution_start"');
  const { begin, effects, told, close } = await sessionOn(disk, { answers: [writes('a'), { text: 'ok' }] });
  const running = begin();
  await disk.stopped;
  await sleep(WHILE_MS);
  expect([await effects(), told.filter(({ type }) => type === 'tool_execution_start')]).toEqual(['', []]);
  disk.goOn();
  expect((await running).outcome).toEqual({ status: 'done' });
  expect(await effects()).toBe('a\n');
  await close();
});

test('results become durable during the request, and the answer waits for them', async () => {
  const disk = stoppingDisk('wrote a');
  const session = await sessionOn(disk, { answers: [writes('a'), { text: 'Next.', ...writes('b') }, { text: 'ok' }] });
  const { begin, server, told, effects } = session;
  const running = begin();
  await disk.stopped;
  await server.settled(2);
  await sleep(WHILE_MS);
  expect(server.requests[1]?.rawBody).toContain('wrote a');
  expect(told.at(-1)).toMatchObject({ type: 'tool_execution_start', args: { line: 'a' } });
  expect(await effects()).toBe('a\n');
  disk.goOn();
  const { outcome } = await running;
  await session.close();
  expect([outcome, await effects()]).toEqual([{ status: 'done' }, 'a\nb\n']);
  const lasting = told.filter(({ type }) => !type.endsWith('_delta')).map(({ seq }) => seq);
  expect((await readJournalFile(session.path)).records.map(({ seq }) => seq)).toEqual(lasting);
});

test('a stalled disk is outrun by one request only, even without any call', async () => {
  const disk = stoppingDisk('first');
  const refused = (text: string) => ({ text, calls: [{ name: 'ledger', args: {} }] });
  const { begin, server, close } = await sessionOn(disk, {
    answers: [refused('first'), refused('second'), refused('third'), { text: 'ok' }],
  });
  const running = begin();
  await disk.stopped;
  await server.settled(2);
  await sleep(WHILE_MS);
  expect(server.requests.length).toBe(2);
  disk.goOn();
  expect((await running).outcome).toEqual({ status: 'done' });
  expect(server.requests.length).toBe(4);
  await close();
});

test('a cancel before results are durable leaves no unhandled rejection', async () => {
  const unhandled: unknown[] = [];
  const listener = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', listener);
  onTestFinished(() => void process.off('unhandledRejection', listener));
  const disk = stoppingDisk('wrote a');
  const { begin, server, close } = await sessionOn(disk, { answers: [writes('a'), { text: 'late', delayMs: 1e6 }] });
  const controller = new AbortController();
  const running = begin(controller.signal);
  await disk.stopped;
  await server.received(2);
  controller.abort();
  // The request closes after the rejected wait for the disk.
  await server.settled(2);
  disk.goOn();
  expect((await running).outcome).toEqual({ status: 'incomplete', failure: { kind: 'aborted', by: 'user' } });
  await close();
  expect(unhandled).toEqual([]);
});

const warning = (message: string) => ({ type: 'warning', message }) as const;

test('an event is durable once stored, however many follow', async () => {
  const appends: PromiseWithResolvers<void>[] = [];
  const append = () => (appends.push(Promise.withResolvers<void>()), appends.at(-1)?.promise ?? Promise.reject());
  const store = { append, note: () => undefined };
  const bus = new Bus({ owner: { session: 's' }, lastSeq: 0, store, pass: (event) => [event] });
  bus.emit(warning('one'), {});
  const settled = bus.settled();
  await until(() => appends.length >= 1);
  bus.emit(warning('two'), {});
  appends[0]?.resolve();
  await settled;
  await until(() => appends.length >= 2);
  let isLaterSafe = false;
  const later = bus.settled().then(() => (isLaterSafe = true));
  await sleep(5);
  expect(isLaterSafe).toBe(false);
  appends[1]?.resolve();
  await later;
});

test('after a failed write no later event is told or durable', async () => {
  let appends = 0;
  const store = {
    append: async () => {
      if ((appends += 1) === 1) throw new Error('the disk is gone');
    },
    note: () => undefined,
  };
  const bus = new Bus({ owner: { session: 's' }, lastSeq: 0, store, pass: (event) => [event] });
  const reader = bus.reader();
  bus.emit(warning('lost'), {});
  await sleep(5);
  bus.emit(warning('later'), {});
  await expect(bus.settled()).rejects.toThrow('the disk is gone');
  bus.close();
  for await (const event of reader) expect.fail(`${event.type} was told`);
  expect(appends).toBe(1);
});
