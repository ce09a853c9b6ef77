// A disk that fills up during a session: reported at once, nothing starts, and work resumes with free space.

import { mkdtemp, open, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Journal, readJournalFile, type JournalFile } from '@drover/core/journal/file/journal';
import { Recorder } from '@drover/core/journal/recorder';
import { expect, test } from 'vitest';
import { agentOn } from '../../support/agent.ts';
import { until } from '../../support/until.ts';

/** A disk with this many bytes free. */
function smallDisk(disk: { room: number }): (path: string) => Promise<JournalFile> {
  return async (path) => {
    const file = await open(path, 'w+');
    const write = async (bytes: Buffer, at: number, length: number, position: number) => {
      const fitting = Math.min(length, Math.max(0, disk.room - position));
      if (fitting > 0) await file.write(bytes, at, fitting, position);
      if (fitting < length) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      return { bytesWritten: fitting, buffer: bytes };
    };
    return {
      write,
      datasync: () => file.datasync(),
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
    } as JournalFile;
  };
}

async function sessionOn(disk: { room: number }) {
  const path = join(await mkdtemp(join(tmpdir(), 'drover-full-')), 'journal.jsonl');
  const told: string[] = [];
  const { journal } = await Journal.open({
    path,
    session: 's',
    onTrouble: (message) => told.push(message),
    onRecovery: () => told.push('recovered'),
    openFile: smallDisk(disk),
  });
  const store = new Recorder({ journal, diagnose: () => undefined });
  const agent = await agentOn(
    { answers: [{ calls: [{ name: 'write', args: { path: 'a.txt', content: 'effect' } }] }, { text: 'Done.' }] },
    { id: 's', store },
  );
  return { ...agent, path, told, journal };
}

test('no tool starts while its intent is unwritable, and all resumes with free space', async () => {
  const whole = await sessionOn({ room: 1e9 });
  await whole.run('go');
  await whole.journal.close();
  // There is room for everything before the intent, and not for the intent.
  const disk = { room: (await readFile(whole.path, 'utf8')).indexOf('"tool_execution_start"') };
  const { run, cwd, told, path, journal } = await sessionOn(disk);
  const running = run('go');
  await until(() => told.length > 0);
  await sleep(300);
  await expect(readFile(join(cwd, 'a.txt'))).rejects.toThrow('ENOENT');
  expect(told).toEqual([expect.stringMatching(/cannot be written \(ENOSPC\): nothing new is started until it can$/)]);
  disk.room = 1e9;
  const { result, events } = await running;
  await journal.close();
  expect(result.outcome).toEqual({ status: 'done' });
  expect(told.at(-1)).toBe('recovered');
  expect(await readFile(join(cwd, 'a.txt'), 'utf8')).toBe('effect');
  const kept = new Set((await readJournalFile(path)).records.map(({ seq }) => seq));
  expect(events.filter(({ type, seq }) => !type.endsWith('_delta') && !kept.has(seq))).toEqual([]);
});

test('no request is sent before the user’s message is durable', async () => {
  const whole = await sessionOn({ room: 1e9 });
  await whole.run('go');
  await whole.journal.close();
  const disk = { room: (await readFile(whole.path, 'utf8')).indexOf('"message_end"') };
  const { run, server, told, journal } = await sessionOn(disk);
  const running = run('go');
  await until(() => told.length > 0);
  await sleep(200);
  expect(server.requests).toHaveLength(0);
  disk.room = 1e9;
  expect((await running).result.outcome).toEqual({ status: 'done' });
  await journal.close();
});

test('a caller that does not want to wait for free space can cancel', async () => {
  const { session, told, journal } = await sessionOn({ room: 1_200 });
  const controller = new AbortController();
  const execution = session.execute({ content: 'go' }, controller.signal);
  await until(() => told.length > 0);
  controller.abort();
  await sleep(50);
  await journal.close();
  await expect(execution.result()).rejects.toThrow('no space left on device');
});
