// json: one event a line on standard output, and nothing else there, ever.
//
// Lines that come together are written together: an answer may come in a thousand deltas a second, and
// a write for each would cost more than everything else about it.

import { type Output, print } from '../io.ts';
import type { View } from './view.ts';

const PENDING_CHARS_MAX = 64 * 1024;

// Invisible to people, and obeyed by terminals: C1 controls, marks that turn text round, characters without width.
const UNSEEN = /[\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF]/g;
// The runners of GitHub and Azure obey ##[command] and ##vso[command] anywhere in a log.
const COMMAND = /##(?=\w{0,16}\[)/g;

/** JSON that is the same to its readers, and in which neither a terminal nor a CI log finds anything to obey. */
export function jsonViewText(value: unknown, indent?: number): string {
  return harmlessJson(JSON.stringify(value, undefined, indent));
}

function harmlessJson(text: string): string {
  return text
    .replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replace(COMMAND, '#\\u0023');
}

export function jsonView(output: Output): View {
  let pending = '';
  let soon: NodeJS.Immediate | undefined;
  let writing: Promise<void> | undefined; // until there is room again
  const flush = (): Promise<void> => {
    clearImmediate(soon);
    soon = undefined;
    const text = harmlessJson(pending);
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
      pending += `${JSON.stringify(event)}\n`;
      if (pending.length > PENDING_CHARS_MAX) return flush();
      soon ??= setImmediate(() => void flush());
      return writing;
    },
    say: async () => undefined,
    close: flush,
  };
}
