// Turns a scripted answer into a reply that a wire format can send: fills templates, gives ids, counts tokens.

import { createHash } from 'node:crypto';
import { fillAnswerJson, type Fill } from './template.ts';
import type { Answer, AnswerPart, ScriptedCall, Text } from '../script.ts';
import { sealOfAnswer } from './seal.ts';
import { meterTokensIn } from '../meter/tokens.ts';
import {
  wireTextSlices,
  type Pieces,
  type Reply,
  type ReplyPart,
  type RequestView,
  type TokenCounts,
} from '../wire/wire.ts';

const CHUNK_CHARS = 16;

const CALL_PREFIXES = { anthropic: 'toolu_', openai: 'call_', 'openai-chat': 'call_' } as const;

export type Making = {
  readonly answer: Answer;
  readonly fill: Fill;
  readonly view: RequestView;
  /** The raw request makes the ids unique. */
  readonly rawBody: Uint8Array;
  readonly prompt: Omit<TokenCounts, 'output' | 'reasoning'>;
  readonly chunkChars: number | undefined;
};

export function replyOfAnswer({ answer, fill, view, rawBody, prompt, chunkChars = CHUNK_CHARS }: Making): Reply {
  const id = createHash('sha256').update(rawBody).update(String(view.n)).digest('hex').slice(0, 24);
  const parts = partsOfAnswer(answer).map((part, index): ReplyPart => {
    if ('thinking' in part)
      return { type: 'thinking', text: fill(part.thinking), seal: sealOfAnswer(fill(part.thinking)) };
    if ('redactedThinking' in part) return { type: 'redacted', seal: sealOfAnswer(part.redactedThinking) };
    if ('call' in part)
      return callOfAnswer(
        part.call,
        fill,
        `${CALL_PREFIXES[view.api]}${id.slice(0, 20)}${index.toString(16).padStart(4, '0')}`,
      );
    return { type: 'text', pieces: piecesOfAnswer(part.text, fill, chunkChars) };
  });
  const reasoning = sumOfAnswer(parts, (part) => (part.type === 'thinking' ? meterTokensIn(part.text) : 0));
  const usage = { ...prompt, output: reasoning + sumOfAnswer(parts, tokensOfAnswerPart), reasoning, ...answer.usage };
  const stop = answer.stop ?? (parts.some(({ type }) => type === 'call') ? 'calls' : 'end');
  return { id, model: view.model, createdSeconds: Math.floor(Date.now() / 1000), parts, stop, usage, chunkChars };
}

function partsOfAnswer({ parts, thinking, redactedThinking, text, calls = [] }: Answer): readonly AnswerPart[] {
  if (parts !== undefined) return parts;
  return [
    ...(thinking === undefined ? [] : [{ thinking }]),
    ...(redactedThinking === undefined ? [] : [{ redactedThinking }]),
    ...(text === undefined || text === '' ? [] : [{ text }]),
    ...calls.map((call) => ({ call })),
  ];
}

function callOfAnswer({ name, args = {}, id }: ScriptedCall, fill: Fill, made: string): ReplyPart {
  const filled = fillAnswerJson(args, fill);
  return { type: 'call', id: id ?? made, name, args: filled, wireArgs: JSON.stringify(filled) };
}

function piecesOfAnswer(text: Text, fill: Fill, chunkChars: number): Pieces {
  if (typeof text === 'string') {
    const filled = fill(text);
    return { whole: () => filled, each: () => wireTextSlices(filled, chunkChars), tokens: meterTokensIn(filled) };
  }
  const { repeat, times } = text;
  return {
    whole: () => repeat.repeat(times),
    each: () => repeatAnswerPiece(repeat, times),
    tokens: times * meterTokensIn(repeat),
  };
}

function* repeatAnswerPiece(piece: string, times: number): Generator<string> {
  for (let index = 0; index < times; index++) yield piece;
}

function tokensOfAnswerPart(part: ReplyPart): number {
  switch (part.type) {
    case 'text':
      return part.pieces.tokens;
    case 'call':
      return meterTokensIn(part.name) + meterTokensIn(part.args);
    case 'thinking':
    case 'redacted':
      return 0;
  }
}

function sumOfAnswer<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}
