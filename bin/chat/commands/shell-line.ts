// `!command` in a chat: runs in the folder, in the sandbox if there is one. Its output is printed as it comes, and the
// model reads the end of it with the next message.

import { Cleaner } from '../../views/text/terminal-text.ts';
import type { Talk } from '../talk.ts';

const CHARS_MAX = 20_000;

export type ShellLine = {
  readonly talk: Talk;
  readonly print: (text: string) => void;
  readonly signal: AbortSignal;
};

export async function runChatShellLine(command: string, { talk, print, signal }: ShellLine): Promise<void> {
  const cleaner = new Cleaner();
  const decoder = new TextDecoder();
  let output = '';
  let isCut = false;
  const end = await talk.shell(
    command,
    (chunk) => {
      const text = decoder.decode(chunk, { stream: true });
      isCut ||= output.length + text.length > CHARS_MAX;
      output = (output + text).slice(-CHARS_MAX);
      print(cleaner.push(text));
      return undefined;
    },
    signal,
  );
  if (output !== '' && !output.endsWith('\n')) print('\n');
  const verdict = end.exitCode === undefined ? `ended by ${end.signal ?? end.endedBy}` : `exit code ${end.exitCode}`;
  if (end.exitCode !== 0) print(`  ${verdict}\n`);
  const head = isCut ? '[only the end of the output]\n' : '';
  talk.note(`[The user ran a command in the folder: ${command}]\n${head}${output.trimEnd()}\n[${verdict}]`);
}
