// A server in a process that can be killed and started again at the same port.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DroverClient } from '@drover/client/client';
import type { JsonObject } from '@drover/protocol/json';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath } from '@drover/core/journal/session-journal';
import type { Script } from '@drover/rehearsal/script';
import { onTestFinished } from 'vitest';
import { rehearsal, temporaryFolder } from '../agent.ts';
import { TOKEN } from './serve-host.ts';

export type ServeProcess = {
  readonly home: string;
  readonly url: string;
  readonly client: DroverClient;
  readonly pid: () => number;
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** The log of its slow tools. */
  readonly ledger: () => Promise<readonly string[]>;
  /** A session's stored events, as its readers get them. */
  readonly kept: (id: string) => Promise<readonly JsonObject[]>;
};

export async function serveProcess(script: Script): Promise<ServeProcess> {
  const home = await temporaryFolder();
  const root = join(home, 'root');
  const ledger = join(home, 'ledger');
  await mkdir(root);
  await writeFile(ledger, '');
  const model = await rehearsal(script);
  let child: ChildProcess | undefined;
  let port = 0;
  const kill = async (): Promise<void> => {
    const dying = child;
    child = undefined;
    if (dying === undefined) return;
    const gone = new Promise((resolve) => dying.once('close', resolve));
    dying.kill('SIGKILL');
    await gone;
  };
  const start = async (): Promise<void> => {
    child = startChild([home, root, model.url, String(port), ledger]);
    port = await portOf(child);
  };
  onTestFinished(kill);
  await start();
  const url = `http://127.0.0.1:${port}`;
  return {
    home,
    url,
    client: new DroverClient({ baseUrl: url, token: TOKEN }),
    pid: () => child?.pid ?? 0,
    kill,
    start,
    ledger: async () => (await readFile(ledger, 'utf8')).trim().split('\n'),
    kept: async (id) => {
      const { records } = await readJournalFile(journalPath(home, id));
      return records.filter(({ type }) => type !== 'partial');
    },
  };
}

function startChild(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, 'serve-child.ts'), ...args], {
    // Compiled once for all processes, because start-up is most of their time.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'drover-test-compiled'), ...process.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.stdout?.once('data', (line: Buffer) => resolve(Number(line.toString().trim())));
    child.once('close', () => reject(new Error('the server ended before it listened')));
  });
}
