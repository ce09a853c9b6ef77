// A fake process environment: three in-memory streams, variables, a folder, and a stop signal on demand.

import { PassThrough, Readable } from 'node:stream';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { main } from '../../bin/drover.ts';
import type { Input, Io, StopCause } from '../../bin/io.ts';

export type Given = {
  readonly env?: Record<string, string>;
  readonly stdin?: string | Uint8Array;
  readonly cwd?: string;
  readonly columns?: number;
  /** Lines that the user types, one per question; undefined leaves the question open. */
  readonly typed?: readonly (string | undefined)[];
};

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** A temporary folder, removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-cli-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const NO_SANDBOX = /^drover: no sandbox: .*\n/gm;

/** This machine may have no sandbox; only the tests of the sandbox look at that. */
export function withoutNotice(text: string): string {
  return text.replaceAll(NO_SANDBOX, '');
}

export class FakeIo {
  readonly io: Io;
  readonly #out: Sink;
  readonly #err: Sink;
  readonly #listeners = new Set<(cause: StopCause) => void>();

  constructor({ env, stdin, cwd, columns, typed }: Given & { readonly cwd: string }) {
    this.#out = new Sink(columns);
    this.#err = new Sink(typed === undefined ? columns : (columns ?? 80));
    this.io = {
      stdin:
        typed === undefined
          ? Readable.from(stdin === undefined ? [] : [Buffer.from(stdin)])
          : keyboard(typed, this.#err),
      stdout: this.#out,
      stderr: this.#err,
      env: { HOME: cwd, PATH: process.env['PATH'], ...env },
      cwd,
      node: process.execPath,
      onStop: ({ stop }) => {
        this.#listeners.add(stop);
        return () => void this.#listeners.delete(stop);
      },
    };
  }

  stop(cause: StopCause): void {
    for (const stop of this.#listeners) stop(cause);
  }

  get stdout(): string {
    return this.#out.text;
  }

  /** stderr without the notice that there is no sandbox; tests of that notice read `notices`. */
  get stderr(): string {
    return withoutNotice(this.#err.text);
  }

  get notices(): readonly string[] {
    return this.#err.text.match(NO_SANDBOX) ?? [];
  }
}

/** Types the next line after each question, and closes stdin after the last one. */
function keyboard(lines: readonly (string | undefined)[], screen: PassThrough): Input {
  const keys = new PassThrough();
  const left = [...lines];
  screen.on('data', (chunk: Buffer) => {
    if (!/(?:\[\w\]\w+|\n {2}\w+|goes back): $/.test(chunk.toString())) return;
    if (left.length === 0) return void keys.end();
    const line = left.shift();
    if (line !== undefined) keys.write(`${line}\n`);
  });
  return Object.assign(keys, { isTTY: true });
}

class Sink extends PassThrough {
  text = '';
  readonly isTTY: boolean;
  readonly columns?: number;

  constructor(columns: number | undefined) {
    super();
    this.isTTY = columns !== undefined;
    if (columns !== undefined) this.columns = columns;
    this.on('data', (chunk: Buffer) => (this.text += chunk.toString()));
  }
}

/** Runs drover as a function. The folder's name, which differs each time, is shown as <cwd>. */
export async function drover(argv: readonly string[], given: Given = {}): Promise<Ran> {
  const cwd = given.cwd ?? (await temporaryFolder());
  const fake = new FakeIo({ ...given, cwd });
  const code = await main(argv, fake.io);
  await new Promise((resolve) => setImmediate(resolve));
  const tidy = (text: string): string => text.replaceAll(cwd, '<cwd>');
  return { code, stdout: tidy(fake.stdout), stderr: tidy(fake.stderr) };
}
