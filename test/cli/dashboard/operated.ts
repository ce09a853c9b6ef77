// A real run with its dashboard on a fake terminal: a test presses keys and reads the screen.

import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, Script } from '@drover/rehearsal/script';
import { startRehearsal } from '@drover/rehearsal/server';
import { onTestFinished } from 'vitest';
import { readRunState } from '../../../bin/history/run.ts';
import { main } from '../../../bin/drover.ts';
import type { StopCause } from '../../../bin/io.ts';
import type { JsonObject } from '@drover/protocol/json';
import { calls, RunDesk } from '../../support/run/run-desk.ts';
import { temporaryFolder } from '../../support/workspace.ts';
import { FakeTerminal, type Size } from '../views/terminal.ts';

const SEE_MS_MAX = 60_000;

export const KEY = {
  up: '\u001B[A',
  down: '\u001B[B',
  enter: '\r',
  escape: '\u001B',
  tab: '\t',
  pageDown: '\u001B[6~',
} as const;

export type OperatedOptions = {
  readonly size?: Size;
  readonly env?: Record<string, string>;
  readonly argv?: readonly string[];
};

export class OperatedRun {
  readonly terminal: FakeTerminal;
  readonly desk: RunDesk;
  /** The exit code. */
  readonly ended: Promise<number>;

  private constructor(desk: RunDesk, terminal: FakeTerminal, ended: Promise<number>) {
    this.desk = desk;
    this.terminal = terminal;
    this.ended = ended;
  }

  /** Starts a run in worker threads. Without a terminal on stderr, the plan runs as it is. */
  static async start(desk: RunDesk, { size, env, argv = [] }: OperatedOptions = {}): Promise<OperatedRun> {
    const terminal = new FakeTerminal(size ?? { columns: 100, rows: 30 });
    const stops = new Set<(cause: StopCause) => void>();
    const io = {
      ...terminal.io({
        HOME: desk.folder,
        PATH: process.env['PATH'],
        NO_COLOR: '1',
        DROVER_HOME: desk.home,
        ANTHROPIC_API_KEY: 'k',
        ANTHROPIC_BASE_URL: desk.server.url,
        ...env,
      }),
      stderr: new PassThrough().resume(),
      cwd: desk.repository,
      node: process.execPath,
      onStop: ({ stop }: { readonly stop: (cause: StopCause) => void }) => {
        stops.add(stop);
        return () => void stops.delete(stop);
      },
    };
    const typed = ['run', 'do it', '--model', 'anthropic/scripted', '--sandbox', 'off', ...argv];
    return new OperatedRun(desk, terminal, main(typed, io));
  }

  async press(keys: string): Promise<void> {
    this.terminal.keys.write(keys);
    // The keys are read before what is written after them is drawn.
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Waits until the screen holds all of these. */
  async see(...words: readonly (string | RegExp)[]): Promise<string> {
    const has = (text: string) =>
      words.every((word) => (typeof word === 'string' ? text.includes(word) : word.test(text)));
    const late = new AbortController();
    const shown = this.terminal.until(has).finally(() => late.abort());
    const timeout = sleep(SEE_MS_MAX, 'late', { signal: late.signal }).catch(() => undefined);
    if ((await Promise.race([shown, timeout])) === 'late')
      throw new Error(`${words.join(', ')} is not on the screen:\n${(await this.terminal.screen()).join('\n')}`);
    return (await this.terminal.screen()).join('\n');
  }

  async row(task: string): Promise<string> {
    return (await this.terminal.screen()).find((line) => line.includes(` ${task} `)) ?? '';
  }

  /** Lets calls of `waitsFor` continue. */
  async allow(name: string): Promise<void> {
    await writeFile(join(this.desk.folder, name), '');
  }

  /** The records in the journal of the run. */
  async records(): Promise<readonly JsonObject[]> {
    const [id = ''] = await readdir(join(this.desk.home, 'runs'));
    return (await readRunState(this.desk.home, id)).records;
  }
}

/** A command that runs until the test allows it to continue. It is asked about, unless --yes allows it. */
export function waitsFor(folder: string, name: string): Answer {
  return calls('shell', { command: `until [ -e '${join(folder, name)}' ]; do sleep 0.05; done; echo went on` });
}

/** A desk whose script knows the folder of the desk. */
export async function deskWith(scriptOf: (folder: string) => Script): Promise<RunDesk> {
  const folder = await temporaryFolder();
  const server = await startRehearsal(scriptOf(folder));
  onTestFinished(() => server.close());
  return RunDesk.in(folder, server, { 'a.txt': 'one\n' });
}
