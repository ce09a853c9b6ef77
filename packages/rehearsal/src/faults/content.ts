// Faults in what the model says: odd arguments, names, ids and stop reasons.

import { isRehearsalObject, type Json } from '../json.ts';
import { sealOfAnswer } from '../answer/seal.ts';
import { type Pieces, type Reply, type ReplyPart, type Stop, wireTextSlices } from '../wire/wire.ts';
import type { FaultName } from './fault.ts';

type CallPart = Extract<ReplyPart, { type: 'call' }>;

export function spoilContent(reply: Reply, fault: FaultName): Reply {
  switch (fault) {
    case 'args-empty':
      return spoilEachCall(reply, () => ({ wireArgs: '' }));
    case 'args-null':
      return spoilEachCall(reply, () => ({ wireArgs: null, args: null }));
    case 'args-object':
      return spoilEachCall(reply, ({ args }) => ({ wireArgs: args }));
    case 'args-double':
      return spoilEachCall(reply, ({ args }) => ({
        wireArgs: JSON.stringify(JSON.stringify(args)),
        args: JSON.stringify(args),
      }));
    case 'args-garbage':
      return spoilEachCall(reply, ({ args }) => ({ wireArgs: `${JSON.stringify(args)}}} and so on` }));
    case 'args-glued':
      return spoilEachCall(reply, ({ args }) => ({ wireArgs: JSON.stringify(args).repeat(2) }));
    case 'args-nul':
      return spoilEachCall(reply, ({ args }) => ({
        args: faultWithNul(args),
        wireArgs: JSON.stringify(faultWithNul(args)),
      }));
    case 'args-not-json':
      return spoilEachCall(reply, ({ args }) => ({ wireArgs: JSON.stringify(args).replaceAll('"', '').slice(0, -1) }));
    case 'name-case':
      return spoilEachCall(reply, ({ name }) => ({ name: name.toUpperCase() }));
    case 'name-prefix':
      return spoilEachCall(reply, ({ name }) => ({ name: `functions.${name}` }));
    case 'name-tail':
      return spoilEachCall(reply, ({ name }) => ({ name: `${name}<|channel|>commentary` }));
    case 'name-unknown':
      return spoilEachCall(reply, ({ name }) => ({ name: `${name}_that_is_not` }));
    case 'same-ids':
      return spoilEachCall(reply, (_, first) => ({ id: first.id }));
    case 'reused-ids':
      return spoilEachCall(reply, (_, __, index) => ({ id: `call_reused_${index}` }));
    case 'odd-ids':
      return spoilEachCall(reply, (_, __, index) => ({ id: `call:${index}|${'x'.repeat(80)}` }));
    case 'empty':
      return { ...reply, parts: [], stop: 'end' };
    case 'thinking-only':
      return { ...reply, parts: [faultyThinkingOf(reply)], stop: 'end' };
    case 'pause':
      // Only tools of the server pause an answer; calls for the client end it.
      return { ...reply, parts: reply.parts.filter(({ type }) => type !== 'call'), stop: 'pause' };
    case 'refusal':
      return { ...reply, parts: reply.parts.filter(({ type }) => type === 'text'), stop: 'refusal' };
    case 'length':
      return { ...reply, parts: faultCutText(reply.parts), stop: 'length' };
    case 'length-in-args':
      return {
        ...spoilEachCall(reply, ({ wireArgs }) => ({
          wireArgs: typeof wireArgs === 'string' ? halfOfFaultText(wireArgs) : wireArgs,
        })),
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

function spoilEachCall(
  reply: Reply,
  change: (call: CallPart, first: CallPart, index: number) => Partial<CallPart>,
): Reply {
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

function faultWithNul(args: Json): Json {
  if (!isRehearsalObject(args)) return args;
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [key, typeof value === 'string' ? `${value}\0` : value]),
  );
}

function faultyThinkingOf(reply: Reply): ReplyPart {
  return (
    reply.parts.find(({ type }) => type === 'thinking') ?? { type: 'thinking', text: 'Hm.', seal: sealOfAnswer('Hm.') }
  );
}

/** Nothing follows the text that the limit cut off. */
function faultCutText(parts: readonly ReplyPart[]): readonly ReplyPart[] {
  const end = parts.findIndex(({ type }) => type === 'text');
  return end === -1 ? parts : [...parts.slice(0, end), ...parts.slice(end, end + 1).map(faultHalfText)];
}

function faultHalfText(part: ReplyPart): ReplyPart {
  if (part.type !== 'text') return part;
  const text = halfOfFaultText(part.pieces.whole());
  const pieces: Pieces = {
    whole: () => text,
    each: () => wireTextSlices(text, 16),
    tokens: Math.ceil(part.pieces.tokens / 2),
  };
  return { type: 'text', pieces };
}

/** Splits no surrogate pair, or the text could not be encoded. */
function halfOfFaultText(text: string): string {
  return text.slice(0, Math.ceil(text.length / 2)).replace(/[\uD800-\uDBFF]$/, '');
}
