// The journal file: cut anywhere, damaged anywhere, with two writers, on a full disk.

import { spawn } from 'node:child_process';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '@drover/protocol/json';
import { readJournalContents } from '@drover/core/journal/file/format';
import { Journal, readJournalFile, type JournalFile, type JournalOptions } from '@drover/core/journal/file/journal';
import { Lock } from '@drover/core/journal/file/lock';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/agent.ts';
import { until } from '../../support/until.ts';

const RECORDS: readonly JsonObject[] = Array.from({ length: 8 }, (_, n) => ({
  type: 'warning',
  message: `number ${n} – ünï\u2028code`,
  n,
}));

async function place(): Promise<JournalOptions> {
  const folder = await temporaryFolder();
  return {
    path: join(folder, 'sessions', 's', 'journal.jsonl'),
    session: 's',
    onTrouble: () => undefined,
    onRecovery: () => undefined,
  };
}

async function written(records: readonly JsonObject[]): Promise<JournalOptions> {
  const options = await place();
  const { journal } = await Journal.open(options);
  await journal.append(records, true);
  await journal.close();
  return options;
}

test('appended records are there on reopening, and the next one follows', async () => {
  const options = await written(RECORDS);
  const { journal, records } = await Journal.open(options);
  expect(records).toEqual(RECORDS);
  await journal.append([{ type: 'later' }], false);
  await journal.close();
  expect((await readJournalFile(options.path)).records).toEqual([...RECORDS, { type: 'later' }]);
});

test('a crash at any byte of the last three records leaves whole records', async () => {
  const options = await written(RECORDS);
  const whole = await readFile(options.path);
  const lines = whole.toString('latin1').split('\n');
  const begin = lines.slice(0, -4).join('\n').length + 1;
  for (let size = begin; size <= whole.length; size++) {
    await writeFile(options.path, whole.subarray(0, size));
    const survived = whole.subarray(0, size).toString('latin1').split('\n').length - 2;
    const { journal } = await Journal.open(options);
    await journal.append([{ type: 'next' }], true);
    await journal.close();
    expect((await readJournalFile(options.path)).records).toEqual([...RECORDS.slice(0, survived), { type: 'next' }]);
  }
});

test('bytes after the last newline are removed on opening', async () => {
  const options = await written(RECORDS);
  const whole = await readFile(options.path);
  for (const rest of ['{"type":"warning","mess', '\0'.repeat(4_096)]) {
    await writeFile(options.path, Buffer.concat([whole, Buffer.from(rest)]));
    await Journal.open(options).then(({ journal }) => journal.close());
    expect((await readFile(options.path)).equals(whole)).toBe(true);
  }
});

test('an empty file, or half a header, is started anew', async () => {
  const options = await place();
  await Journal.open(options).then(({ journal }) => journal.close());
  for (const text of ['', '{"journal":1,"ses']) {
    await writeFile(options.path, text);
    const { journal, records } = await Journal.open(options);
    await journal.close();
    expect([records, (await readJournalFile(options.path)).version]).toEqual([[], 1]);
  }
});

test.each([
  ['a flipped byte', (text: string) => text.replace('number 3', 'number 4'), 5],
  ['a missing line', (text: string) => text.split('\n').toSpliced(4, 1).join('\n'), 5],
  [
    'two lines in the wrong order',
    (text: string) =>
      text
        .split('\n')
        .toSpliced(4, 2, text.split('\n')[5] ?? '', text.split('\n')[4] ?? '')
        .join('\n'),
    5,
  ],
  ['a block of zeros', (text: string) => text.replace(/(?<=number 3)[^\n]*/, '\0'.repeat(64)), 5],
  [
    'a line that is not JSON',
    (text: string) => text.replace(/\{"type":"warning","message":"number 3[^\n]*/, 'oops'),
    5,
  ],
])('%s is damage: reported with its line, and the file stays unchanged', async (_, damage, line) => {
  const options = await written(RECORDS);
  const damaged = damage(await readFile(options.path, 'utf8'));
  await writeFile(options.path, damaged);
  await expect(readJournalFile(options.path)).rejects.toMatchObject({ failure: { kind: 'journal.damaged', line } });
  await expect(Journal.open(options)).rejects.toMatchObject({ failure: { kind: 'journal.damaged', line } });
  expect(await readFile(options.path, 'utf8')).toBe(damaged);
  expect(readJournalContents(Buffer.from(damaged)).records).toEqual(RECORDS.slice(0, 3));
});

test('a journal of a newer version is refused with the reason', async () => {
  const options = await written([]);
  const { sealJournalRecord: seal } = await import('@drover/core/journal/file/format');
  await writeFile(options.path, `${seal({ journal: 2, session: 's' }, '').text}\n`);
  await expect(readJournalFile(options.path)).rejects.toThrow('was written by a newer drover (format 2)');
});

test('records of unknown types are kept', async () => {
  const options = await written([{ type: 'from_the_future', stuff: [1, { a: null }] }]);
  expect((await readJournalFile(options.path)).records).toEqual([{ type: 'from_the_future', stuff: [1, { a: null }] }]);
});

test('concurrent appends share a sync and keep their order', async () => {
  let syncs = 0;
  const options = await place();
  const openFile = async (path: string): Promise<JournalFile> => counting(await open(path, 'w+'), () => (syncs += 1));
  const { journal } = await Journal.open({ ...options, openFile });
  await Promise.all(Array.from({ length: 200 }, (_, n) => journal.append([{ n }], true)));
  await journal.close();
  expect((await readJournalFile(options.path)).records).toEqual(Array.from({ length: 200 }, (_, n) => ({ n })));
  expect(syncs).toBeLessThan(10);
});

function counting(file: JournalFile, onSync: () => void): JournalFile {
  return {
    write: ((...args: Parameters<JournalFile['write']>) => file.write(...args)) as JournalFile['write'],
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
    datasync: () => {
      onSync();
      return file.datasync();
    },
  };
}

test('a full disk is reported at once, leaves no partial record, and recovers', async () => {
  const told: string[] = [];
  let room = 300;
  const options = await place();
  const openFile = async (path: string): Promise<JournalFile> => {
    const file = await open(path, 'w+');
    const write = async (bytes: Buffer, at: number, length: number, position: number) => {
      const part = Math.min(length, Math.max(0, room - position));
      if (part > 0) await file.write(bytes, at, part, position);
      if (part < length) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
      return { bytesWritten: part, buffer: bytes };
    };
    return { ...counting(file, () => undefined), write: write as JournalFile['write'] };
  };
  const { journal } = await Journal.open({
    ...options,
    openFile,
    onTrouble: (message) => told.push(message),
    onRecovery: () => told.push('recovered'),
  });
  let isDone = false;
  const appending = journal.append(RECORDS, true).then(() => (isDone = true));
  await until(() => told.length > 0);
  expect(isDone).toBe(false);
  expect((await readJournalFile(options.path)).records).toEqual([]);
  room = 1e9;
  await appending;
  await journal.close();
  expect(told).toEqual([expect.stringContaining('cannot be written (ENOSPC)'), 'recovered']);
  expect((await readJournalFile(options.path)).records).toEqual(RECORDS);
});

test.each(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO'])('%s is reported at the first try, and recovers', async (code) => {
  const options = await place();
  let failing = 0; // the number of writes that fail
  let tries = 0;
  const openFile = async (path: string): Promise<JournalFile> => {
    const file = await open(path, 'w+');
    const write = async (...args: [Buffer, number, number, number]) => {
      tries += 1;
      if (failing === 0) return file.write(...args);
      failing -= 1;
      throw Object.assign(new Error('no'), { code });
    };
    return { ...counting(file, () => undefined), write: write as JournalFile['write'] };
  };
  const told: string[] = [];
  const { journal } = await Journal.open({
    ...options,
    openFile,
    onTrouble: (message) => told.push(`${tries}: ${message}`),
    onRecovery: () => told.push(`${tries}: recovered`),
  });
  failing = 1;
  tries = 0;
  await journal.append(RECORDS, true);
  await journal.close();
  expect(told).toEqual([
    `1: ${options.path} cannot be written (${code}): nothing new is started until it can`,
    '2: recovered',
  ]);
  expect((await readJournalFile(options.path)).records).toEqual(RECORDS);
});

test('another error is permanent: the appender gets it', async () => {
  const options = await place();
  let isBroken = false;
  const openFile = async (path: string): Promise<JournalFile> => {
    const file = await open(path, 'w+');
    const write = async (...args: [Buffer, number, number, number]) => {
      if (isBroken) throw Object.assign(new Error('bad descriptor'), { code: 'EBADF' });
      return file.write(...args);
    };
    return { ...counting(file, () => undefined), write: write as JournalFile['write'] };
  };
  const { journal } = await Journal.open({ ...options, openFile });
  isBroken = true;
  await expect(journal.append(RECORDS, true)).rejects.toThrow('bad descriptor');
  await journal.close();
});

test('two writers never coexist, and a dead owner’s lock is taken over', async () => {
  const options = await written(RECORDS);
  const script = `
    import { Lock } from ${JSON.stringify(import.meta.resolve('@drover/core/journal/file/lock'))};
    const lock = Lock.take(process.argv[1]);
    process.stdout.write(lock === undefined ? 'refused' : 'taken');
    if (lock !== undefined) setTimeout(() => undefined, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, `${options.path}.lock`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  expect(String(await new Promise((resolve) => child.stdout.once('data', resolve)))).toBe('taken');
  await expect(Journal.open(options)).rejects.toMatchObject({
    failure: { kind: 'journal.busy', owner: `${child.pid}` },
  });
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('exit', resolve));
  const { journal } = await Journal.open(options);
  expect(Lock.take(`${options.path}.lock`)).toBeUndefined();
  await journal.close();
});
