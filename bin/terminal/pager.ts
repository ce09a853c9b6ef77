// Long text for a terminal: through the user's pager, or straight to the output.

import { spawn } from 'node:child_process';
import { type Io, print } from '../io.ts';

const NONE = new Set(['', 'cat']);
// As git sets it: quit if it fits, pass colours, leave the text on the screen.
const LESS = 'FRX';

/** Shows text. PAGER names the pager (default: less); PAGER=cat turns it off. */
export async function showInPager(text: string, io: Io): Promise<void> {
  const pager = (io.env['PAGER'] ?? 'less').trim();
  const isTerminal = io.stdout.isTTY === true && io.stdin.isTTY === true;
  if (!isTerminal || NONE.has(pager) || !(await runPager(text, pager, io))) await print(io.stdout, text);
}

/** False if the pager could not be started, so nothing was shown. */
function runPager(text: string, pager: string, { env }: Io): Promise<boolean> {
  const child = spawn('sh', ['-c', pager], {
    env: { LESS, LV: '-c', ...env },
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  // Ctrl-C is the pager's while it runs.
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    // 127: the shell found no such program. A reader that quits early closes the pipe, which is fine.
    child.once('close', (code) => resolve(code !== 127 && code !== 126));
    child.stdin.on('error', () => undefined);
    child.stdin.end(text);
  });
}
