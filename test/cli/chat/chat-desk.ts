// A fixture for chats: a chat at an in-memory terminal with keys, a screen and a scripted model.

import { PassThrough } from 'node:stream';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '@drover/protocol/json';
import { type Rehearsal, startRehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { onTestFinished } from 'vitest';
import { main } from '../../../bin/drover.ts';
import type { Io, StopCause } from '../../../bin/io.ts';
import { temporaryFolder } from '../fake-io.ts';
import { FakeTerminal } from '../views/terminal.ts';

export const KEYS = {
  enter: '\r',
  altEnter: '\u001B\r',
  ctrlJ: '\n',
  escape: '\u001B',
  up: '\u001B[A',
  down: '\u001B[B',
  left: '\u001B[D',
  ctrlC: '\u0003',
  ctrlD: '\u0004',
  ctrlU: '\u0015',
  ctrlZ: '\u001A',
  tab: '\t',
  shiftTab: '\u001B[Z',
  ctrlO: '\u000F',
  ctrlR: '\u0012',
  pasteStart: '\u001B[200~',
  pasteEnd: '\u001B[201~',
} as const;

const SEE_MS_MAX = 60_000;

/** The empty prompt, with its mode line. */
const PROMPTED = /\n❯ ?\nmode: (ask|edit|read only) \(Shift-Tab\)( · Enter sends ·.*)?$/;

type Wish = { readonly env?: Record<string, string>; readonly columns?: number };

/** A folder, a home and a model for a series of chats. */
export class ChatDesk {
  readonly cwd: string;
  readonly home: string;
  readonly server: Rehearsal;

  private constructor(cwd: string, server: Rehearsal) {
    this.cwd = cwd;
    this.home = join(cwd, '.drover');
    this.server = server;
  }

  static async with(script: Script): Promise<ChatDesk> {
    const server = await startRehearsal(script);
    onTestFinished(() => server.close());
    return new ChatDesk(await temporaryFolder(), server);
  }

  get env(): Record<string, string> {
    const address = { ANTHROPIC_BASE_URL: this.server.url, OPENAI_BASE_URL: this.server.baseUrlFor('openai') };
    return { HOME: this.cwd, ANTHROPIC_API_KEY: 'a-test-key', OPENAI_API_KEY: 'a-test-key', ...address };
  }

  chat(args: readonly string[] = [], { env = {}, columns = 70 }: Wish = {}): Chatting {
    const wanted = args.includes('--model') || args.includes('--session') ? [] : ['--model', 'anthropic/any'];
    return new Chatting(['chat', ...wanted, ...args], this.cwd, { ...this.env, ...env }, columns);
  }

  /** The messages of the nth request (from 1), one per line, without tools and system prompt. */
  asked(n: number): readonly string[] {
    const { body } = this.server.requests[n - 1] ?? {};
    const { messages, input } = (body ?? {}) as { readonly messages?: JsonObject[]; readonly input?: JsonObject[] };
    return (messages ?? input ?? []).map(gist);
  }
}

function gist(message: JsonObject): string {
  const { role, content, type } = message as {
    readonly role?: string;
    readonly content?: unknown;
    readonly type?: string;
  };
  if (role === undefined) return `${type}`;
  if (typeof content === 'string') return `${role}: ${content}`;
  const parts = content as readonly { readonly type: string; readonly text?: string; readonly content?: unknown }[];
  return `${role}: ${parts.map((part) => part.text ?? part.type).join(' | ')}`;
}

export class Chatting {
  readonly terminal: FakeTerminal;
  /** The modes that the terminal was set to, in order. */
  readonly modes: (boolean | 'asleep')[] = [];
  readonly code: Promise<number>;
  errors = '';
  readonly #keys = new PassThrough();
  #stop: ((cause: StopCause) => void) | undefined;

  constructor(argv: readonly string[], cwd: string, env: Record<string, string>, columns: number) {
    this.terminal = new FakeTerminal({ columns, rows: 40 });
    const stderr = new PassThrough();
    stderr.on('data', (chunk: Buffer) => (this.errors += chunk.toString()));
    const io: Io = {
      stdin: Object.assign(this.#keys, { isTTY: true, setRawMode: (isRaw: boolean) => this.modes.push(isRaw) }),
      stdout: this.terminal.output,
      stderr,
      env: { PATH: process.env['PATH'], TERM: 'xterm', ...env },
      cwd,
      node: process.execPath,
      job: {
        signal: () => this.modes.push('asleep'),
        isForeground: () => true,
        onContinue: () => () => undefined,
        onExit: () => () => undefined,
      },
      onStop: ({ stop }) => {
        this.#stop = stop;
        return () => (this.#stop = undefined);
      },
    };
    this.code = main(argv, io);
  }

  /** Presses keys once the prompt is shown. */
  async types(...keys: readonly string[]): Promise<void> {
    await this.prompted();
    for (const key of keys) this.press(key);
  }

  press(key: string): void {
    this.#keys.write(key);
  }

  /** Sends a message and waits for the next prompt. */
  async says(text: string): Promise<void> {
    await this.types(text, KEYS.enter);
    await this.prompted();
  }

  /** True if the prompt is the last line on the screen. */
  prompted(): Promise<void> {
    return this.#until('the prompt', (text) => PROMPTED.test(text));
  }

  shows(text: string): Promise<void> {
    return this.#until(text, (all) => all.includes(text));
  }

  async #until(what: string, holds: (text: string) => boolean): Promise<void> {
    const late = new AbortController();
    const shown = this.terminal.until(holds).finally(() => late.abort());
    const timeout = sleep(SEE_MS_MAX, 'late', { signal: late.signal }).catch(() => undefined);
    if ((await Promise.race([shown, timeout])) === 'late')
      throw new Error(
        `${what} is not on the screen:\n${(await this.terminal.everything()).join('\n')}\n${this.errors}`,
      );
  }

  hangUp(): void {
    this.#keys.end();
  }

  stop(cause: StopCause): void {
    this.#stop?.(cause);
  }

  async screen(): Promise<readonly string[]> {
    return (await this.terminal.everything()).map((line) =>
      line
        .trimEnd()
        .replace(/[\d.]+ m?s ·/, '<time> ·')
        .replace(/[\d,]+ tokens in.*$/, '<tokens>')
        .replace(/✓ [\d.]+ m?s /, '✓ <time> '),
    );
  }
}
