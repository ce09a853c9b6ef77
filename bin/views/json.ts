// json: one event a line on standard output, and nothing else there, ever.
//
// Lines that come together are written together: an answer may come in a thousand deltas a second, and
// a write for each would cost more than everything else about it.

import { type Io, type Output, print } from '../io.ts';
import type { View } from './view.ts';

const PENDING_CHARS_MAX = 64 * 1024;

export function jsonView(output: Output, env: Io['env']): View {
  const isRunner = (env['GITHUB_ACTIONS'] ?? '') !== '';
  let pending = '';
  let soon: NodeJS.Immediate | undefined;
  let writing: Promise<void> | undefined; // until there is room again
  const flush = (): Promise<void> => {
    clearImmediate(soon);
    soon = undefined;
    const text = pending;
    pending = '';
    const written = (writing ?? Promise.resolve()).then(() => print(output, text));
    writing = written;
    void written.then(() => {
      if (writing === written) writing = undefined;
    });
    return written;
  };
  return {
    show(event) {
      const line = JSON.stringify(event);
      // GitHub's runner obeys ##[command] wherever it stands; to readers of JSON this is the same.
      pending += `${isRunner ? line.replaceAll('##[', '#\\u0023[') : line}\n`;
      if (pending.length > PENDING_CHARS_MAX) return flush();
      soon ??= setImmediate(() => void flush());
      return writing;
    },
    say: async () => undefined,
    close: flush,
  };
}
