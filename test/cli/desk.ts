// A fixture for drover commands: a folder with a script for the model, in which drover runs repeatedly.
// Tests may change its sessions on disk.

import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { journalFileHead, readJournalContents, sealJournalRecord } from '@drover/core/journal/file/format';
import { Journal } from '@drover/core/journal/file/journal';
import { journalPath } from '@drover/core/journal/session-journal';
import type { JsonObject } from '@drover/protocol/json';
import { onTestFinished } from 'vitest';
import { drover, type Given, type Ran, temporaryFolder } from './fake-io.ts';

export class Desk {
  readonly cwd: string;
  readonly home: string;

  private constructor(cwd: string) {
    this.cwd = cwd;
    this.home = join(cwd, '.drover');
  }

  static async with(script: string): Promise<Desk> {
    const desk = new Desk(await temporaryFolder());
    await writeFile(join(desk.cwd, 'script.yaml'), script);
    return desk;
  }

  run(argv: readonly string[], given: Given = {}): Promise<Ran> {
    return drover(argv, { cwd: this.cwd, ...given });
  }

  /** A session with this id, in the lines view, on the scripted model. */
  exec(session: string, prompt: string, args: readonly string[] = []): Promise<Ran> {
    return this.run(['exec', prompt, '--session', session, '--model', 'rehearsal/script.yaml', ...args]);
  }

  async records(session: string): Promise<readonly JsonObject[]> {
    return readJournalContents(await readFile(journalPath(this.home, session))).records;
  }

  /** Rewrites the journal, with a fresh seal for every record. */
  async rewrite(
    session: string,
    records: readonly JsonObject[],
    head: JsonObject = journalFileHead({ session }),
  ): Promise<void> {
    let sum = '';
    const lines = [head, ...records].map((record) => {
      const line = sealJournalRecord(record, sum);
      sum = line.sum;
      return `${line.text}\n`;
    });
    await writeFile(journalPath(this.home, session), lines.join(''));
  }

  async copy(session: string, name: string): Promise<void> {
    await cp(join(this.home, 'sessions', session), join(this.home, 'sessions', name), { recursive: true });
  }

  /** Holds the session's lock until the returned function is called or the test ends. */
  async occupy(session: string): Promise<() => Promise<void>> {
    const silent = { onTrouble: () => undefined, onRecovery: () => undefined };
    const { journal } = await Journal.open({ path: journalPath(this.home, session), session, ...silent });
    onTestFinished(() => journal.close());
    return () => journal.close();
  }
}

/** Times differ between runs, and token counts differ with every change of the prompt. */
export function steady(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d/g, '<date>')
    .replace(/\d\d:\d\d:\d\d\.\d{3}/g, '<clock>')
    .replace(/(\d+ s ago|just now)/g, '<ago>')
    .replace(/\d+(\.\d+)? m?s\b/g, '<time>')
    .replace(/[\d,]+ tokens in( \([\d,]+ from cache\))?( ·|,) \d+ out/g, '<tokens>')
    .replace(/estimate [\d,]+, reported [\d,]+, ratio [\d.]+/, '<figures>');
}
