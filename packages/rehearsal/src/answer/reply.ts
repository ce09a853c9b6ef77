// Turns a scripted answer into a reply that a wire format can send: fills templates, gives ids, counts tokens.

import { createHash } from 'node:crypto';
import { fillJson, type Fill } from './template.ts';
import type { Answer, AnswerPart, ScriptedCall, Text } from '../script.ts';
import { sealOf } from './seal.ts';
import { tokensIn } from '../meter/tokens.ts';
import { slices, type Pieces, type Reply, type ReplyPart, type RequestView, type TokenCounts } from '../wire/wire.ts';

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

export function replyOf({ answer, fill, view, rawBody, prompt, chunkChars = CHUNK_CHARS }: Making): Reply {
  const id = createHash('sha256').update(rawBody).update(String(view.n)).digest('hex').slice(0, 24);
  const parts = partsOf(answer).map((part, index): ReplyPart => {
    if ('thinking' in part) return { type: 'thinking', text: fill(part.thinking), seal: sealOf(fill(part.thinking)) };
    if ('redactedThinking' in part) return { type: 'redacted', seal: sealOf(part.redactedThinking) };
    if ('call' in part)
      return callOf(
        part.call,
        fill,
        `${CALL_PREFIXES[view.api]}${id.slice(0, 20)}${index.toString(16).padStart(4, '0')}`,
      );
    return { type: 'text', pieces: piecesOf(part.text, fill, chunkChars) };
  });
  const reasoning = sum(parts, (part) => (part.type === 'thinking' ? tokensIn(part.text) : 0));
  const usage = { ...prompt, output: reasoning + sum(parts, tokensOf), reasoning, ...answer.usage };
  const stop = answer.stop ?? (parts.some(({ type }) => type === 'call') ? 'calls' : 'end');
  return { id, model: view.model, createdSeconds: Math.floor(Date.now() / 1000), parts, stop, usage, chunkChars };
}

function partsOf({ parts, thinking, redactedThinking, text, calls = [] }: Answer): readonly AnswerPart[] {
  if (parts !== undefined) return parts;
  return [
    ...(thinking === undefined ? [] : [{ thinking }]),
    ...(redactedThinking === undefined ? [] : [{ redactedThinking }]),
    ...(text === undefined || text === '' ? [] : [{ text }]),
    ...calls.map((call) => ({ call })),
  ];
}

function callOf({ name, args = {}, id }: ScriptedCall, fill: Fill, made: string): ReplyPart {
  const filled = fillJson(args, fill);
  return { type: 'call', id: id ?? made, name, args: filled, wireArgs: JSON.stringify(filled) };
}

function piecesOf(text: Text, fill: Fill, chunkChars: number): Pieces {
  if (typeof text === 'string') {
    const filled = fill(text);
    return { whole: () => filled, each: () => slices(filled, chunkChars), tokens: tokensIn(filled) };
  }
  const { repeat, times } = text;
  return { whole: () => repeat.repeat(times), each: () => repeated(repeat, times), tokens: times * tokensIn(repeat) };
}

function* repeated(piece: string, times: number): Generator<string> {
  for (let index = 0; index < times; index++) yield piece;
}

function tokensOf(part: ReplyPart): number {
  switch (part.type) {
    case 'text':
      return part.pieces.tokens;
    case 'call':
      return tokensIn(part.name) + tokensIn(part.args);
    case 'thinking':
    case 'redacted':
      return 0;
  }
}

function sum<Item>(items: readonly Item[], count: (item: Item) => number): number {
  return items.reduce((total, item) => total + count(item), 0);
}
