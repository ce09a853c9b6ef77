// Compares a session with its recording, and finds the first difference.
//
// Ignored: token counts, data that a provider sealed for itself, and arguments that could not be parsed. They belong
// to a request and not to the conversation.

import { isDeepStrictEqual } from 'node:util';
import type { AssistantPart, Message } from '@drover/protocol/messages';
import { boundOutputText } from '@drover/core/tools/output/capture';
import { textOnOneLine } from '../views/text/terminal-text.ts';
import { NO_FILE, type Performed } from './performance.ts';
import type { Recording } from './recording.ts';

const EXCERPT_COLUMNS = 70;
const BEFORE_CHARS = 20;

/** The first difference, as a sentence and the two sides; undefined if there is none. */
export async function firstReplayDifference(
  { turns, messages: recorded }: Recording,
  { messages, endings }: Performed,
): Promise<string | undefined> {
  const last = turns.at(-1);
  // A journal may end between a call and its result; later messages are not differences.
  const isCut = last?.ending === undefined && recorded.at(-1)?.role === 'assistant';
  const replayed = isCut ? messages.slice(0, recorded.length) : messages;
  for (let at = 0; at < Math.max(recorded.length, replayed.length); at++) {
    const [was, is] = await Promise.all([recorded[at], replayed[at]].map(comparableMessage));
    if (!isDeepStrictEqual(was, is)) return `message ${at + 1} is not as recorded${bothReplaySides(was, is)}`;
  }
  const at = turns.findIndex(({ ending }, turn) => ending !== undefined && ending !== endings[turn]);
  return at < 0 ? undefined : `turn ${at + 1} ended as ${endings[at]}, and was recorded as ${turns[at]?.ending}`;
}

async function comparableMessage(message: Message | undefined): Promise<object | undefined> {
  switch (message?.role) {
    case undefined:
    case 'user':
      return message;
    case 'assistant':
      return { role: message.role, content: message.content.map(comparablePart), stop: message.stop };
    case 'tool': {
      // A result with appended instructions may be longer than a tool's own output, and is truncated again.
      const results = message.results.map(async (result) => ({
        ...result,
        output: await boundOutputText(result.output, NO_FILE),
      }));
      return { role: message.role, results: await Promise.all(results) };
    }
  }
}

function comparablePart(part: AssistantPart): object {
  if (part.type !== 'tool_call') return part;
  const { type, id, name, args, problem } = part;
  return { type, id, name, args: problem === undefined ? args : {} };
}

function bothReplaySides(was: object | undefined, is: object | undefined): string {
  const [recorded, replayed] = [was, is].map((side) => (side === undefined ? undefined : JSON.stringify(side)));
  const from = Math.max(countCommonChars(recorded ?? '', replayed ?? '') - BEFORE_CHARS, 0);
  return `\n  recorded: ${excerptAtDifference(recorded, from)}\n  replayed: ${excerptAtDifference(replayed, from)}`;
}

function countCommonChars(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

function excerptAtDifference(json: string | undefined, from: number): string {
  if (json === undefined) return 'nothing';
  return textOnOneLine(`${from > 0 ? '…' : ''}${json.slice(from)}`, EXCERPT_COLUMNS);
}
