// Compaction: a conversation that grows too long is replaced by its task, a summary and its tail.
//
// WHAT HOLDS
//   The first user message, which is the task, stays to the letter. A call and its result are never
//   parted. A history no longer than the tail is left alone. A compaction that fails, or whose summary
//   is empty, leaves the history as it was.
//
// The summary is asked for in a conversation of its own, from a transcript that is clipped to fit: the
// whole history is, after all, what was too long.

import { DroverError } from '../failure.ts';
import { isBlank } from '../model/request.ts';
import type { Message } from '../model/protocol.ts';

export const COMPACTIONS_IN_A_ROW_MAX = 3;
const TAIL_MESSAGES = [8, 4, 2]; // the nth compaction in a row keeps less
const TRANSCRIPT_SHARE = 0.5; // of the model's context
const RESULT_CHARS_MAX = 2_000;

const FRAME = '[What happened before, in short. This is background, not a request.]\n\n';

export const SUMMARY_SYSTEM =
  'You condense the history of a coding agent so that it can go on without it. Write plain text: what was asked, what was found out (files, names, commands, errors), what was changed and where, what was decided and why, what remains to be done. Be specific; leave out pleasantries. Do not address anyone and do not continue the work.';

/** The messages before and behind the cut, or undefined where there is nothing to replace. */
export function cut(
  messages: readonly Message[],
  inARow: number,
): { readonly head: readonly Message[]; readonly tail: readonly Message[] } | undefined {
  const keep = TAIL_MESSAGES[Math.min(inARow, TAIL_MESSAGES.length - 1)] ?? 2;
  let at = messages.length - keep;
  while (at > 0 && messages[at]?.role === 'tool') at -= 1;
  const task = messages.findIndex(({ role }) => role === 'user');
  // Only the task itself, or the task and one older summary, stand before the cut: nothing to gain.
  if (at <= task + 1 || (at === task + 2 && isSummary(messages[task + 1]))) return undefined;
  return { head: messages.slice(0, at), tail: messages.slice(at) };
}

/** What the history is replaced by. */
export function compacted(head: readonly Message[], tail: readonly Message[], summary: string): readonly Message[] {
  if (isBlank(summary)) throw new DroverError({ kind: 'compaction.failed', message: 'the summary came back empty' });
  const task = head.filter(({ role }) => role === 'user').slice(0, 1);
  return [...task, { role: 'user', content: [{ type: 'text', text: FRAME + summary.trim() }] }, ...tail];
}

/** The history as one text for the model that summarises it. */
export function transcript(head: readonly Message[], contextChars: number): string {
  const text = head.map(told).join('\n\n');
  const max = Math.max(1_000, Math.floor(contextChars * TRANSCRIPT_SHARE));
  // Both ends: the beginning says what was asked, the end says where things stand.
  return text.length <= max ? text : `${text.slice(0, max / 4)}\n\n[… left out …]\n\n${text.slice(-(max * 3) / 4)}`;
}

/** It stands for what was said before, and nobody has said it. */
export function isSummary(message: Message | undefined): boolean {
  const part = message?.role === 'user' ? message.content[0] : undefined;
  return part?.type === 'text' && part.text.startsWith(FRAME);
}

function told(message: Message): string {
  switch (message.role) {
    case 'user':
      return `USER: ${message.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join('\n')}`;
    case 'tool':
      return message.results
        .map(({ name, output, isError }) => `RESULT of ${name}${isError ? ' (failed)' : ''}: ${clip(output)}`)
        .join('\n');
    case 'assistant':
      return message.content
        .flatMap((part) => {
          if (part.type === 'text') return [`AGENT: ${part.text}`];
          return part.type === 'tool_call' ? [`CALL ${part.name}: ${clip(JSON.stringify(part.args))}`] : [];
        })
        .join('\n');
  }
}

function clip(text: string): string {
  return text.length <= RESULT_CHARS_MAX
    ? text
    : `${text.slice(0, RESULT_CHARS_MAX / 2)} … ${text.slice(-RESULT_CHARS_MAX / 2)}`;
}
