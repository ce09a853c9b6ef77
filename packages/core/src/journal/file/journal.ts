// Journal of a session or a run: the only writer of its file.
//
// Guarantees
//   1. `append` resolves when the records are in the file, and on disk if one of them must be durable.
//   2. Appends that arrive together share one sync. Records are in the order of the calls.
//
// Full disk: no record is half written. The journal truncates the file to its last whole record and retries until
// there is room or the journal is closed. It calls `onTrouble` once, and `onRecovery` when a retry succeeds.

import { existsSync } from 'node:fs';
import { mkdir, open, readFile, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DroverError } from '../../errors.ts';
import type { Owner } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { FORMAT_VERSION, journalFileHead, readJournalContents, sealJournalRecord, type Contents } from './format.ts';
import { Lock, journalLockOwner } from './lock.ts';
import { type ReadTo, readFurtherJournalRecords } from './tail.ts';
import { pause } from '../../promises.ts';

const RETRY_MS = 250;
const PASSING_TROUBLE = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO']);

/** The file operations that a journal needs. Tests pass a file that fails. */
export type JournalFile = Pick<FileHandle, 'write' | 'datasync' | 'truncate' | 'close'>;

export type JournalOptions = Owner & {
  readonly path: string;
  /** The part of the file that the caller has read already; default: none. */
  readonly read?: ReadTo;
  readonly onTrouble: (message: string) => void;
  readonly onRecovery: () => void;
  /** Called if opening had to repair the file. */
  readonly diagnose?: (message: string) => void;
  readonly openFile?: (path: string) => Promise<JournalFile>;
};

type Pending = {
  readonly records: readonly JsonObject[];
  readonly durable: boolean;
  readonly done: () => void;
  readonly fail: (error: Error) => void;
};

type OpenFile = { readonly file: JournalFile; readonly lock: Lock };

export class Journal {
  readonly #options: JournalOptions;
  readonly #file: JournalFile;
  readonly #lock: Lock;
  #bytes: number;
  #lastSum: string;
  #pending: Pending[] = [];
  #isWriting = false;
  #closing = new AbortController();

  private constructor(options: JournalOptions, { file, lock }: OpenFile, contents: Contents) {
    this.#options = options;
    this.#file = file;
    this.#lock = lock;
    this.#bytes = contents.goodBytes;
    this.#lastSum = contents.lastSum;
  }

  /** Opens the journal for writing and returns the records that the caller has not read. */
  static async open(
    options: JournalOptions,
  ): Promise<{ readonly journal: Journal; readonly records: readonly JsonObject[] }> {
    const { path } = options;
    await makeJournalFolder(dirname(path));
    const lock = Lock.take(`${path}.lock`);
    if (lock === undefined)
      throw new DroverError({ kind: 'journal.busy', path, owner: journalLockOwner(`${path}.lock`) });
    try {
      const contents = existsSync(path) ? await readRestOfJournal(path, options.read) : EMPTY;
      const torn = contents === EMPTY ? 0 : (await stat(path)).size - contents.goodBytes;
      const file = await (options.openFile ?? openJournalForAppend)(path);
      const journal = new Journal(options, { file, lock }, contents);
      if (torn > 0) options.diagnose?.(`a journal was repaired: ${torn} bytes of an unfinished record were cut off`);
      await file.truncate(contents.goodBytes);
      if (contents.goodBytes === 0) await journal.append([journalFileHead(journalFileOwner(options))], true);
      return { journal, records: contents.records };
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  append(records: readonly JsonObject[], durable: boolean): Promise<void> {
    return new Promise((done, fail) => {
      this.#pending.push({ records, durable, done, fail });
      if (!this.#isWriting) void this.#writeAll();
    });
  }

  /** Finishes pending appends, without further retries, and releases the lock. Idempotent. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    while (this.#isWriting) await sleep(1);
    await this.#file.close();
    this.#lock.release();
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0);
      try {
        await this.#writePersistently(
          batch.flatMap(({ records }) => records),
          batch.some(({ durable }) => durable),
        );
        for (const { done } of batch) done();
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        for (const { fail } of batch) fail(error);
      }
    }
    this.#isWriting = false;
  }

  async #writePersistently(records: readonly JsonObject[], durable: boolean): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#write(records, durable);
        if (attempt > 1) this.#options.onRecovery();
        return;
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && PASSING_TROUBLE.has(String(error.code)))) throw error;
        if (this.#closing.signal.aborted) throw error;
        if (attempt === 1)
          this.#options.onTrouble(
            `${this.#options.path} cannot be written (${String(error.code)}): nothing new is started until it can`,
          );
        await pause(RETRY_MS, this.#closing.signal);
      }
    }
  }

  async #write(records: readonly JsonObject[], durable: boolean): Promise<void> {
    let sum = this.#lastSum;
    let text = '';
    for (const record of records) {
      const line = sealJournalRecord(record, sum);
      sum = line.sum;
      text += `${line.text}\n`;
    }
    const bytes = Buffer.from(text);
    try {
      for (let at = 0; at < bytes.length;)
        at += (await this.#file.write(bytes, at, bytes.length - at, this.#bytes + at)).bytesWritten;
      if (durable) await this.#file.datasync();
    } catch (error) {
      // A full disk may have taken a part of the bytes. Truncate it, so the next record starts on its own line.
      await this.#file.truncate(this.#bytes);
      throw error;
    }
    this.#bytes += bytes.length;
    this.#lastSum = sum;
  }
}

function journalFileOwner({ run, session }: Owner): Owner {
  return run === undefined ? { session } : { run };
}

const EMPTY: Contents = { version: FORMAT_VERSION, records: [], goodBytes: 0, lastSum: '' };

/** Reads the records behind the part read before: journals only grow, and each line is sealed to the previous one. */
async function readRestOfJournal(path: string, read: ReadTo | undefined): Promise<Contents> {
  if (read === undefined || read.line === 0) return readJournalFile(path);
  const { records, readTo, damage } = await readFurtherJournalRecords(path, read);
  if (damage !== undefined) throw new DroverError({ kind: 'journal.damaged', path, ...damage });
  return { version: FORMAT_VERSION, records, goodBytes: readTo.bytes, lastSum: readTo.sum };
}

/** Reads a whole journal. Throws `journal.damaged` or `journal.newer`. */
export async function readJournalFile(path: string): Promise<Contents> {
  const contents = readJournalContents(await readFile(path));
  if (contents.version > FORMAT_VERSION)
    throw new DroverError({ kind: 'journal.newer', path, version: contents.version });
  if (contents.damage !== undefined) throw new DroverError({ kind: 'journal.damaged', path, ...contents.damage });
  return contents;
}

// Not mkdir's `recursive`: it never returns where the system reports an existing parent as missing,
// as it does below /proc.
async function makeJournalFolder(path: string): Promise<void> {
  const attempt = (): Promise<NodeJS.ErrnoException | undefined> =>
    mkdir(path).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => (error.code === 'EEXIST' ? undefined : error),
    );
  const problem = await attempt();
  if (problem === undefined) return;
  if (problem.code !== 'ENOENT') throw problem;
  await makeJournalFolder(dirname(path));
  const again = await attempt();
  if (again !== undefined) throw again;
}

async function openJournalForAppend(path: string): Promise<JournalFile> {
  // Not append mode: it ignores positions, so writing after a truncate would fail.
  return open(path, existsSync(path) ? 'r+' : 'w+', 0o600);
}
