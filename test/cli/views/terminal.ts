// An in-memory terminal: its output, its screen and its keyboard.

import { PassThrough, Writable } from 'node:stream';
import xterm from '@xterm/headless';
import type { Io, Output } from '../../../bin/io.ts';

export type Size = { readonly columns: number; readonly rows: number };

export class FakeTerminal {
  readonly output: Output;
  /** All output so far. */
  raw = '';
  readonly keys = new PassThrough();
  isRaw = false;
  isForeground = true;
  /** Signals sent to the job, each with the terminal's mode at that moment. */
  readonly signals: string[] = [];
  onSignal: () => void = () => undefined;
  /** The job's listeners. */
  readonly resumed = new Set<() => void>();
  readonly exits = new Set<() => void>();
  #size: Size;
  #wake: () => void = () => undefined;
  readonly #terminal: xterm.Terminal;

  constructor(size: Size) {
    this.#size = size;
    this.#terminal = new xterm.Terminal({
      cols: size.columns,
      rows: size.rows,
      scrollback: 1_000,
      allowProposedApi: true,
      convertEol: true, // as a terminal driver does
    });
    this.#terminal.parser.registerCsiHandler({ final: 'K' }, () => this.#stayInLastColumn());
    const stream = new Writable({
      decodeStrings: false,
      write: (chunk: string, _encoding, done) => {
        this.raw += chunk;
        this.#terminal.write(chunk, () => {
          done();
          this.#wake();
        });
      },
    });
    const size_ = () => this.#size;
    this.output = Object.defineProperties(stream, {
      isTTY: { value: true },
      columns: { get: () => size_().columns },
      rows: { get: () => size_().rows },
    });
  }

  /** The terminal as a program uses it. */
  io(env: Io['env']): Pick<Io, 'stdin' | 'stdout' | 'env' | 'job'> {
    const kept = (listeners: Set<() => void>) => (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    };
    return {
      stdin: Object.assign(this.keys, { isTTY: true, setRawMode: (isRaw: boolean) => (this.isRaw = isRaw) }),
      stdout: this.output,
      env,
      job: {
        signal: (name) => {
          this.signals.push(`${name} ${this.isRaw ? 'raw' : 'normal'}`);
          this.onSignal();
        },
        isForeground: () => this.isForeground,
        onContinue: kept(this.resumed),
        onExit: kept(this.exits),
      },
    };
  }

  /** xterm and tmux leave the cursor in the last column while wrapping is off, so erasing takes that character too. */
  #stayInLastColumn(): boolean {
    const { buffer } = (this.#terminal as unknown as { readonly _core: { readonly buffer: { x: number } } })._core;
    if (!this.#terminal.modes.wraparoundMode) buffer.x = Math.min(buffer.x, this.#terminal.cols - 1);
    return false;
  }

  resize(size: Size): void {
    this.#size = size;
    this.#terminal.resize(size.columns, size.rows);
    this.output.emit('resize');
  }

  /** The visible screen, without empty lines at its end. */
  async screen(): Promise<readonly string[]> {
    await this.#written();
    const { baseY } = this.#terminal.buffer.active;
    return trimmed(this.#lines().slice(baseY));
  }

  /** The visible screen and its scrollback. */
  async everything(): Promise<readonly string[]> {
    await this.#written();
    return trimmed(this.#lines());
  }

  /** Waits until the screen with its scrollback matches. */
  async until(holds: (text: string) => boolean): Promise<void> {
    for (;;) {
      const written = new Promise<void>((resolve) => (this.#wake = resolve));
      if (holds((await this.everything()).join('\n'))) return;
      await written;
    }
  }

  get isCursorVisible(): boolean {
    return this.raw.lastIndexOf('\u001B[?25h') > this.raw.lastIndexOf('\u001B[?25l');
  }

  #lines(): string[] {
    const { active } = this.#terminal.buffer;
    return Array.from({ length: active.length }, (_, at) => active.getLine(at)?.translateToString(true) ?? '');
  }

  #written(): Promise<void> {
    return new Promise((resolve) => this.output.write('', () => resolve()));
  }
}

function trimmed(lines: readonly string[]): readonly string[] {
  return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1);
}
