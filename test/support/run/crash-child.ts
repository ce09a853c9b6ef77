// One process of a session that a test kills: starts or resumes it, and dies at a named point if given. Run by
// crash.ts; everything it uses is real.
//
//   node crash-child.ts <home> <server url> <ledger> <loses> [point] [count]
//
// `loses` says what the death destroys: `process` keeps all writes; `power` keeps only the synced part of the journal,
// and all other effects.

import { appendFileSync, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { Session } from '@drover/core/session/session';
import { foldSessionHistory } from '@drover/core/journal/history';
import { Journal, type JournalFile } from '@drover/core/journal/file/journal';
import { Recorder } from '@drover/core/journal/recorder';
import { journalPath } from '@drover/core/journal/session-journal';
import { wireApis } from '@drover/core/model/catalog';
import type { Provider } from '@drover/core/model/provider';
import { defineTool } from '@drover/core/tools/tool';
import { z } from 'zod';

const [home = '', url = '', ledgerPath = '', loses = '', point = '', count = '1'] = process.argv.slice(2);

let left = Number(count);
/** Kills the process as if by power loss, if this is the chosen occurrence of the point. */
function passing(name: string): void {
  if (name === point && (left -= 1) === 0) process.kill(process.pid, 'SIGKILL');
}

const ledger = (name: 'ledger' | 'ensure') =>
  defineTool({
    name,
    description: 'Writes a line; `ensure` only if it is not there.',
    input: z.object({ line: z.string() }),
    access: 'none',
    subject: ({ line }) => line,
    async run({ line }) {
      passing('before-effect');
      const isThere = readFileSync(ledgerPath, 'utf8').split('\n').includes(line);
      if (name === 'ledger' || !isThere) appendFileSync(ledgerPath, `${line}\n`);
      passing('after-effect');
      return `wrote ${line}`;
    },
  });

async function openFile(path: string): Promise<JournalFile> {
  const file = await open(path, 'a+').then(async (handle) => {
    await handle.close();
    return open(path, 'r+');
  });
  const disk = loses === 'power' ? forgetful(file) : file;
  return {
    async write(...args: [Buffer, number, number, number]) {
      passing('before-write');
      // A torn write: everything before it and its first half reach the disk, then the power fails.
      if (point === 'torn-write' && left === 1) {
        await disk.datasync();
        await file.write(args[0], args[1], Math.ceil(args[2] / 2), args[3]);
      }
      passing('torn-write');
      const written = await disk.write(...args);
      passing('after-write');
      return written;
    },
    async datasync() {
      passing('before-sync');
      await disk.datasync();
      passing('after-sync');
    },
    async truncate(size: number) {
      passing('before-recovery');
      await disk.truncate(size);
      passing('after-recovery');
    },
    close: () => disk.close(),
  } as JournalFile;
}

/** Unsynced data exists only in this process, and is lost with it. */
function forgetful(file: JournalFile): JournalFile {
  let unsynced: (() => Promise<unknown>)[] = [];
  return {
    async write(...[bytes, at, length, position]: [Buffer, number, number, number]) {
      unsynced.push(() => file.write(bytes, at, length, position));
      return { bytesWritten: length, buffer: bytes };
    },
    async datasync() {
      for (const write of unsynced.splice(0)) await write();
      await file.datasync();
    },
    async truncate(size: number) {
      unsynced = [];
      await file.truncate(size);
    },
    close: () => file.close(),
  } as JournalFile;
}

function dying(provider: Provider): Provider {
  return {
    ...provider,
    async *stream(request, signal) {
      passing('before-request');
      for await (const event of provider.stream(request, signal)) {
        passing(event.type === 'finished' ? 'answer-whole' : 'answer-half');
        yield event;
      }
    },
  };
}

const hooks = { onTrouble: () => undefined, onRecovery: () => undefined };
const { journal, records } = await Journal.open({ path: journalPath(home, 's'), session: 's', ...hooks, openFile });
const past = foldSessionHistory(records);
const timeouts = { headersMs: 20_000, firstByteMs: 20_000, silenceMs: 20_000, progressMs: 20_000 };
const session = new Session({
  id: 's',
  worker: 0,
  provider: dying(await wireApis.anthropic({ id: 'anthropic', apiKey: 'k', baseUrl: url, timeouts })),
  model: 'scripted',
  contextTokens: 1_000_000,
  outputTokensMax: 4_096,
  tools: [ledger('ledger'), ledger('ensure')],
  context: { cwd: home, env: {}, outputFolder: home },
  limits: { stepsMax: 1_000, textCallRetriesMax: 2 },
  retry: { attemptsMax: 5, backoffMs: 5, backoffMsMax: 50, waitMsMax: 1_000, wallMsMax: 20_000 },
  judge: async () => ({ effect: 'allow', why: '' }),
  question: async () => ({ allowed: false, by: 'nobody', always: false }),
  pass: (event) => [event],
  store: new Recorder({ journal, diagnose: () => undefined }),
  ...(past && { past }),
});
const isBegun = past !== undefined && past.turn > 0;
if (past?.ending !== 'done') {
  const execution = session.execute(isBegun ? { resume: true } : { content: 'go' }, new AbortController().signal);
  // A printed event counts as delivered: it must never be lost again.
  for await (const { type, seq } of execution) if (!type.endsWith('_delta')) process.stdout.write(`${seq} ${type}\n`);
  const { outcome } = await execution.result();
  if (outcome.status !== 'done') process.stdout.write(`ended ${JSON.stringify(outcome)}\n`);
}
await journal.close();
process.stdout.write('over\n');
