// A fixture with stored runs and sessions: sealed journals written from events, without running an agent.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runJournalPath } from '@drover/coordinator/run/journal';
import type { Owner, Recorded } from '@drover/protocol/events';
import { journalFileHead, readJournalContents, sealJournalRecord } from '@drover/core/journal/file/format';
import { journalPath } from '@drover/core/journal/session-journal';
import type { JsonObject } from '@drover/protocol/json';
import { drover, type Given, type Ran, temporaryFolder } from '../fake-io.ts';

export class Shelf {
  readonly cwd: string;
  readonly home: string;

  private constructor(cwd: string) {
    this.cwd = cwd;
    this.home = join(cwd, '.drover');
  }

  static async empty(): Promise<Shelf> {
    return new Shelf(await temporaryFolder());
  }

  drover(argv: readonly string[], given: Given = {}): Promise<Ran> {
    return drover(argv, { cwd: this.cwd, ...given, env: { NO_COLOR: '1', ...given.env } });
  }

  keepRun(id: string, events: readonly Recorded[]): Promise<void> {
    return keep(runJournalPath(this.home, id), { run: id }, events as unknown as readonly JsonObject[]);
  }

  /** One turn with a prompt and nothing else. */
  keepSession(id: string, asked: string, at: string): Promise<void> {
    const place = { v: 1, at, session: id, turn: 1 };
    const message = { role: 'user', content: [{ type: 'text', text: asked }] };
    return keep(journalPath(this.home, id), { session: id }, [
      { ...place, seq: 1, type: 'session_start', model: 'rehearsal/any', cwd: '/sample' },
      { ...place, seq: 2, type: 'message_end', message },
      { ...place, seq: 3, type: 'incomplete', failure: { kind: 'answer.empty' }, reason: 'it said nothing' },
    ]);
  }

  async recordsOf(id: string): Promise<readonly JsonObject[]> {
    return readJournalContents(await readFile(runJournalPath(this.home, id))).records;
  }
}

async function keep(path: string, owner: Owner, records: readonly JsonObject[]): Promise<void> {
  let sum = '';
  const lines = [journalFileHead(owner), ...records].map((record) => {
    const line = sealJournalRecord(record, sum);
    sum = line.sum;
    return `${line.text}\n`;
  });
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, lines.join(''));
}
