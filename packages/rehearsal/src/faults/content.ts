// Faults in what the model says: odd arguments, names, ids and stop reasons.

import { isObject, type Json } from '../json.ts';
import { sealOf } from '../answer/seal.ts';
import { type Pieces, type Reply, type ReplyPart, type Stop, slices } from '../wire/wire.ts';
import type { FaultName } from './fault.ts';

type CallPart = Extract<ReplyPart, { type: 'call' }>;

export function spoilContent(reply: Reply, fault: FaultName): Reply {
  switch (fault) {
    case 'args-empty':
      return eachCall(reply, () => ({ wireArgs: '' }));
    case 'args-null':
      return eachCall(reply, () => ({ wireArgs: null, args: null }));
    case 'args-object':
      return eachCall(reply, ({ args }) => ({ wireArgs: args }));
    case 'args-double':
      return eachCall(reply, ({ args }) => ({
        wireArgs: JSON.stringify(JSON.stringify(args)),
        args: JSON.stringify(args),
      }));
    case 'args-garbage':
      return eachCall(reply, ({ args }) => ({ wireArgs: `${JSON.stringify(args)}}} and so on` }));
    case 'args-glued':
      return eachCall(reply, ({ args }) => ({ wireArgs: JSON.stringify(args).repeat(2) }));
    case 'args-nul':
      return eachCall(reply, ({ args }) => ({ args: withNul(args), wireArgs: JSON.stringify(withNul(args)) }));
    case 'args-not-json':
      return eachCall(reply, ({ args }) => ({ wireArgs: JSON.stringify(args).replaceAll('"', '').slice(0, -1) }));
    case 'name-case':
      return eachCall(reply, ({ name }) => ({ name: name.toUpperCase() }));
    case 'name-prefix':
      return eachCall(reply, ({ name }) => ({ name: `functions.${name}` }));
    case 'name-tail':
      return eachCall(reply, ({ name }) => ({ name: `${name}<|channel|>commentary` }));
    case 'name-unknown':
      return eachCall(reply, ({ name }) => ({ name: `${name}_that_is_not` }));
    case 'same-ids':
      return eachCall(reply, (_, first) => ({ id: first.id }));
    case 'reused-ids':
      return eachCall(reply, (_, __, index) => ({ id: `call_reused_${index}` }));
    case 'odd-ids':
      return eachCall(reply, (_, __, index) => ({ id: `call:${index}|${'x'.repeat(80)}` }));
    case 'empty':
      return { ...reply, parts: [], stop: 'end' };
    case 'thinking-only':
      return { ...reply, parts: [thinkingOf(reply)], stop: 'end' };
    case 'pause':
      // Only tools of the server pause an answer; calls for the client end it.
      return { ...reply, parts: reply.parts.filter(({ type }) => type !== 'call'), stop: 'pause' };
    case 'refusal':
      return { ...reply, parts: reply.parts.filter(({ type }) => type === 'text'), stop: 'refusal' };
    case 'length':
      return { ...reply, parts: cutText(reply.parts), stop: 'length' };
    case 'length-in-args':
      return {
        ...eachCall(reply, ({ wireArgs }) => ({ wireArgs: typeof wireArgs === 'string' ? half(wireArgs) : wireArgs })),
        stop: 'length',
      };
    default:
      return { ...reply, stop: STOPS[fault] ?? reply.stop };
  }
}

const STOPS: Readonly<Partial<Record<FaultName, Stop>>> = {
  filter: 'filter',
  'context-window': 'context',
};

function eachCall(reply: Reply, change: (call: CallPart, first: CallPart, index: number) => Partial<CallPart>): Reply {
  const calls = reply.parts.filter((part): part is CallPart => part.type === 'call');
  const first = calls[0];
  if (first === undefined) return reply;
  return {
    ...reply,
    parts: reply.parts.map((part) =>
      part.type === 'call' ? { ...part, ...change(part, first, calls.indexOf(part)) } : part,
    ),
  };
}

function withNul(args: Json): Json {
  if (!isObject(args)) return args;
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [key, typeof value === 'string' ? `${value}\0` : value]),
  );
}

function thinkingOf(reply: Reply): ReplyPart {
  return reply.parts.find(({ type }) => type === 'thinking') ?? { type: 'thinking', text: 'Hm.', seal: sealOf('Hm.') };
}

/** Nothing follows the text that the limit cut off. */
function cutText(parts: readonly ReplyPart[]): readonly ReplyPart[] {
  const end = parts.findIndex(({ type }) => type === 'text');
  return end === -1 ? parts : [...parts.slice(0, end), ...parts.slice(end, end + 1).map(halfText)];
}

function halfText(part: ReplyPart): ReplyPart {
  if (part.type !== 'text') return part;
  const text = half(part.pieces.whole());
  const pieces: Pieces = { whole: () => text, each: () => slices(text, 16), tokens: Math.ceil(part.pieces.tokens / 2) };
  return { type: 'text', pieces };
}

/** Splits no surrogate pair, or the text could not be encoded. */
function half(text: string): string {
  return text.slice(0, Math.ceil(text.length / 2)).replace(/[\uD800-\uDBFF]$/, '');
}
