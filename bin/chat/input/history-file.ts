// Messages of all chats, for Up and Ctrl-R: one JSON line each, in drover's state folder, readable by the user only.
//
// A file that cannot be read or written costs the history, never the chat.

import { appendFileSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ENTRIES_MAX = 1_000;
const BYTES_MAX = 2_000_000;
const CHARS_MAX = 10_000;

export class HistoryFile {
  readonly #path: string;
  readonly #redact: (text: string) => string;
  readonly #entries: string[];

  /** `redact` removes secrets before a message is written. */
  constructor(home: string, redact: (text: string) => string) {
    this.#path = join(home, 'chat-history.jsonl');
    this.#redact = redact;
    this.#entries = ignoreHistoryErrors(() => readChatHistoryFile(this.#path)) ?? [];
  }

  get entries(): readonly string[] {
    return this.#entries;
  }

  add(text: string): void {
    if (text.trim() === '' || this.#entries.at(-1) === text) return;
    this.#entries.push(text);
    if (text.length > CHARS_MAX) return;
    ignoreHistoryErrors(() => {
      mkdirSync(join(this.#path, '..'), { recursive: true });
      appendFileSync(this.#path, `${JSON.stringify({ text: this.#redact(text) })}\n`, { mode: 0o600 });
      if (statSync(this.#path).size > BYTES_MAX) shortenChatHistory(this.#path);
    });
  }
}

function readChatHistoryFile(path: string): string[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(-ENTRIES_MAX);
  return lines.flatMap((line) => {
    const entry = ignoreHistoryErrors(() => JSON.parse(line) as { readonly text?: unknown });
    return typeof entry?.text === 'string' ? [entry.text] : [];
  });
}

function shortenChatHistory(path: string): void {
  const lines = readChatHistoryFile(path).slice(-ENTRIES_MAX / 2);
  writeFileSync(`${path}.new`, lines.map((text) => `${JSON.stringify({ text })}\n`).join(''), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Undefined for a problem of the file system, or a line that is not JSON. */
function ignoreHistoryErrors<Value>(work: () => Value): Value | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof Error && 'code' in error)) return undefined;
    throw error;
  }
}
