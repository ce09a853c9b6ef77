// Records a command in a real pseudo-terminal, and keeps the screens that a picture is made of.

import { spawn } from 'node:child_process';
import xterm, { type Terminal } from '@xterm/headless';

export type Size = { readonly columns: number; readonly rows: number };

export type Recording = {
  /** All that the command printed. */
  readonly output: string;
  readonly code: number;
};

/**
 * Runs a shell command under script(1), which gives it a terminal of this size. `onScreen` is called whenever the
 * screen changed.
 */
export async function record(
  command: string,
  { columns, rows }: Size,
  onScreen: (terminal: Terminal) => void,
): Promise<Recording> {
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true });
  const sized = `stty cols ${columns} rows ${rows}; ${command}`;
  const child = spawn('script', ['-qefc', sized, '/dev/null'], {
    env: { ...process.env, TERM: 'xterm-256color', COLORTERM: 'truecolor' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8');
  for await (const chunk of child.stdout as AsyncIterable<string>) {
    output += chunk;
    await new Promise<void>((resolve) => terminal.write(chunk, resolve));
    onScreen(terminal);
  }
  const code = child.exitCode ?? (await new Promise<number>((resolve) => child.once('close', resolve)));
  return { output, code };
}
