// Compaction: shortens a conversation that grows too long for the model's window.
//
// Guarantees
//   1. The first user message, which is the task, stays unchanged. No call loses its result.
//   2. The cut is chosen by tokens. Old results are truncated first, because that needs no request. Then a
//      summary replaces all messages before a tail, and the tail shrinks until the history fits.
//   3. The newest user message stays unchanged if it fits, so that a worker keeps its task.
//   4. A cut is data and deterministic: the same messages and summary give the same history.
//
// The summary is requested in a separate conversation, from a transcript truncated to fit.

import type { Cut } from '@drover/protocol/events';
import { DroverError } from '../errors.ts';
import type { Message, ToolResult } from '@drover/protocol/messages';
import { isBlankForModel } from '../model/request.ts';

export const COMPACTIONS_IN_A_ROW_MAX = 3;
/** Share of the available space that the history fills after a compaction; halved with each further one in a row. */
const GOAL_SHARE = 0.6;
const RECENT_SHARE = 0.5; // of that, for recent messages whose results are not truncated
const OLD_RESULT_CHARS = 2_000;
const TAIL_RESULT_CHARS = [8_000, 2_000, 400, 100];
const TRANSCRIPT_RESULT_CHARS = 2_000;
const WISHED_TAIL_MESSAGES = 2;

const FRAME = '[What happened before, in short. This is background, not a request.]\n\n';

export const SUMMARY_SYSTEM =
  'You condense the history of a coding agent so that it can go on without it. Write plain text: what was asked, what was found out (files, names, commands, errors), what was changed and where, what was decided and why, what remains to be done. Be specific; leave out pleasantries. Do not address anyone and do not continue the work.';

export type Room = {
  /** Tokens of the whole prompt with these messages. */
  readonly tokensOf: (messages: readonly Message[]) => number;
  /** The longest prompt that leaves room for the answer. */
  readonly limit: number;
  /** Maximum tokens of a summary. */
  readonly summaryTokens: number;
};

/** Returns the smallest cut that reaches the goal, else the nearest one; undefined if none shortens the prompt. */
export function planConversationCut(messages: readonly Message[], room: Room, inARow: number): Cut | undefined {
  const fixed = room.tokensOf(messages.filter((_, at) => at === taskInConversation(messages)));
  const space = Math.max(0, Math.min(room.limit, room.tokensOf(messages)) - fixed);
  const goal = fixed + (space * GOAL_SHARE) / 2 ** inARow;
  let best: Cut | undefined;
  let fewest = room.tokensOf(messages);
  for (const cut of conversationCuts(messages, fixed + (goal - fixed) * RECENT_SHARE, room)) {
    const tokens = tokensAfterCut(messages, cut, room);
    if (tokens >= fewest) continue;
    if (tokens <= goal) return cut;
    [best, fewest] = [cut, tokens];
  }
  return best;
}

/** Returns the largest cut; undefined if nothing is left to summarize. */
export function planWishedConversationCut(messages: readonly Message[]): Cut | undefined {
  const at = conversationCutPoints(messages).findLast((each) => each <= messages.length - WISHED_TAIL_MESSAGES);
  if (at === undefined) return undefined;
  const cut = summaryCutOfConversation(messages, at);
  const isLeft = messages.slice(0, at).every((each, index) => cut.kept?.includes(index) || isConversationSummary(each));
  return isLeft ? undefined : cut;
}

/** Returns the messages after a cut. Throws if the cut needs a summary and it is blank. */
export function applyConversationCut(
  messages: readonly Message[],
  cut: Cut,
  summary: string | undefined,
): readonly Message[] {
  const clipped = clipConversation(messages, cut.clip);
  if (cut.tail === undefined) return clipped;
  if (summary === undefined || isBlankForModel(summary))
    throw new DroverError({ kind: 'compaction.failed', message: 'the summary came back empty' });
  const at = clipped.length - cut.tail;
  const kept = cut.kept ?? [taskInConversation(messages)];
  const before = clipped.slice(0, at).filter((_, index) => kept.includes(index));
  return [...before, conversationSummaryMessage(summary), ...clipped.slice(at)];
}

/** Returns messages as one text for the model that summarizes them. */
export function conversationTranscript(head: readonly Message[], charsMax: number): string {
  const text = head.map(messageForTranscript).join('\n\n');
  const max = Math.max(1_000, Math.floor(charsMax));
  // Keep both ends: the task is at the start, the current state at the end.
  return text.length <= max ? text : `${text.slice(0, max / 4)}\n\n[… left out …]\n\n${text.slice(-(max * 3) / 4)}`;
}

/** Returns true for a message that holds a summary of earlier ones. */
export function isConversationSummary(message: Message | undefined): boolean {
  const part = message?.role === 'user' ? message.content[0] : undefined;
  return part?.type === 'text' && part.text.startsWith(FRAME);
}

function conversationSummaryMessage(summary: string): Message {
  return { role: 'user', content: [{ type: 'text', text: FRAME + summary.trim() }] };
}

// ── possible cuts ─────────────────────────────────────────────────────────────────────────────

/** Yields possible cuts, from the smallest to the largest. */
function* conversationCuts(messages: readonly Message[], recentTokens: number, room: Room): Generator<Cut> {
  const points = conversationCutPoints(messages);
  const isRecent = (at: number): boolean => room.tokensOf(messages.slice(at)) <= recentTokens;
  // The newest step begins at the second to last point. The model has not seen its results yet.
  const last = points.at(-2) ?? messages.length;
  const recent = Math.min(points.find(isRecent) ?? last, last);
  yield { clip: { messages: recent, chars: OLD_RESULT_CHARS } };
  for (const at of points.slice(0, -1)) yield summaryCutOfConversation(messages, at);
  for (const chars of TAIL_RESULT_CHARS)
    yield { ...summaryCutOfConversation(messages, last), clip: { messages: messages.length, chars } };
  yield summaryCutOfConversation(messages, messages.length);
  yield { tail: 0, kept: [taskInConversation(messages)] };
}

function summaryCutOfConversation(messages: readonly Message[], at: number): Cut {
  const task = taskInConversation(messages);
  const request = messages.findLastIndex((each) => each.role === 'user' && !isConversationSummary(each));
  return { tail: messages.length - at, kept: request > task && request < at ? [task, request] : [task] };
}

/** Returns positions after the task that separate no call from its result. The last one is the end. */
function conversationCutPoints(messages: readonly Message[]): readonly number[] {
  const points: number[] = [messages.length];
  let isFree = true; // no result is between here and the next answer
  for (let at = messages.length - 1; at > taskInConversation(messages); at--) {
    const role = messages[at]?.role;
    if (role === 'tool') isFree = false;
    if (role === 'assistant') isFree = true;
    if (isFree) points.push(at);
  }
  return points.toReversed();
}

function taskInConversation(messages: readonly Message[]): number {
  return messages.findIndex(({ role }) => role === 'user');
}

function tokensAfterCut(messages: readonly Message[], cut: Cut, room: Room): number {
  if (cut.tail === undefined) return room.tokensOf(applyConversationCut(messages, cut, undefined));
  return room.tokensOf(applyConversationCut(messages, cut, '-')) + room.summaryTokens;
}

// ── truncated texts ───────────────────────────────────────────────────────────────────────────

function clipConversation(messages: readonly Message[], wanted: Cut['clip']): readonly Message[] {
  if (wanted === undefined) return messages;
  return messages.map((message, at) =>
    message.role === 'tool' && at < wanted.messages
      ? { ...message, results: message.results.map((each) => clipConversationResult(each, wanted.chars)) }
      : message,
  );
}

/** Truncates a result to `chars`, note included. Idempotent. */
function clipConversationResult({ images, ...result }: ToolResult, chars: number): ToolResult {
  const { output } = result;
  const isWhole = output.length <= chars;
  if (isWhole && images === undefined) return result;
  const missing = [
    ...(isWhole ? [] : [`${output.length - chars} or more characters`]),
    ...(images === undefined ? [] : ['images']),
  ];
  const note = `\n[… ${missing.join(' and ')} left out to save room …]\n`;
  const half = Math.max(0, Math.floor((chars - note.length) / 2));
  const both = isWhole ? [output, ''] : [output.slice(0, half), output.slice(output.length - half)];
  return { ...result, output: both.join(note).toWellFormed() };
}

function messageForTranscript(message: Message): string {
  switch (message.role) {
    case 'user':
      return `USER: ${message.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join('\n')}`;
    case 'tool':
      return message.results
        .map(
          ({ name, output, isError }) =>
            `RESULT of ${name}${isError ? ' (failed)' : ''}: ${bothEndsForTranscript(output)}`,
        )
        .join('\n');
    case 'assistant':
      return message.content
        .flatMap((part) => {
          if (part.type === 'text') return [`AGENT: ${part.text}`];
          return part.type === 'tool_call'
            ? [`CALL ${part.name}: ${bothEndsForTranscript(JSON.stringify(part.args))}`]
            : [];
        })
        .join('\n');
  }
}

function bothEndsForTranscript(text: string): string {
  const half = TRANSCRIPT_RESULT_CHARS / 2;
  return text.length <= TRANSCRIPT_RESULT_CHARS ? text : `${text.slice(0, half)} … ${text.slice(-half)}`;
}
