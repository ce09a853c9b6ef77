// Dialects of Chat Completions: deviations of compatible servers from the original.

import {
  isRehearsalList,
  isRehearsalObject,
  rehearsalObjectsIn,
  rehearsalText,
  type Json,
  type JsonObject,
} from '../json.ts';
import type { Frame, Reply } from '../wire/wire.ts';
import type { FaultName } from './fault.ts';
import { faultChangingFrames } from './stream.ts';

export function chatDialectFault(frames: Iterable<Frame>, fault: FaultName, reply: Reply): Iterable<Frame> {
  switch (fault) {
    case 'chat-no-index':
      return spoilEachChatCall(frames, (call) => faultLackingKey(call, 'index'));
    case 'chat-no-id':
      return spoilEachChatCall(frames, (call) => faultLackingKey(call, 'id'));
    case 'chat-id-changes':
      return spoilEachChatCall(frames, (call, nth) => ({
        ...call,
        id: `call_changing_${Number(call['index'])}_${nth}`,
      }));
    case 'chat-id-repeated':
      return faultRepeatingFrames(frames);
    case 'chat-name-late':
      return spoilEachChatCall(frames, (call, nth, name) => ({
        ...call,
        function: { arguments: faultyArgumentsOf(call), ...(nth === 1 && { name }) },
      }));
    case 'chat-nulls':
      return spoilEachChatCall(frames, (call, nth) =>
        nth === 0
          ? call
          : { ...call, id: null, type: null, function: { name: null, arguments: faultyArgumentsOf(call) } },
      );
    case 'chat-whole-call':
      return faultOfWholeCalls(frames);
    case 'chat-finish-stop':
      return spoilEachChoice(frames, finishWithStop);
    case 'chat-no-finish':
      return faultWithoutFrames(frames, ({ kind }) => kind === 'stop');
    case 'chat-usage-null':
      return faultChangingFrames(faultWithoutFrames(frames, isUsageFrame), (_, chunk) => ({ ...chunk, usage: null }));
    case 'chat-usage-absent':
      return faultChangingFrames(faultWithoutFrames(frames, isUsageFrame), (_, chunk) =>
        faultLackingKey(chunk, 'usage'),
      );
    case 'chat-usage-extra':
      return faultWithUsageAnyway(frames, reply);
    case 'chat-content-array':
      return spoilEachDelta(frames, (delta) =>
        rehearsalText(delta['content']) === ''
          ? delta
          : { ...delta, content: [{ type: 'text', text: rehearsalText(delta['content']) }] },
      );
    case 'chat-reasoning':
      return faultWithThinking(frames, reply, (text) => ({ reasoning: text }));
    case 'chat-reasoning-content':
      return faultWithThinking(frames, reply, (text) => ({ reasoning_content: text }));
    case 'chat-think-tags':
      return faultWithThinking(frames, reply, (text) => ({ content: `<think>${text}</think>` }));
    case 'chat-no-role':
      return spoilEachDelta(frames, (delta) => faultLackingKey(delta, 'role'));
    case 'chat-extra-choices':
      return faultChangingFrames(frames, addExtraChoice);
    case 'chat-null-delta':
      return faultWithNullDeltas(frames);
    default:
      return frames;
  }
}

function faultLackingKey(value: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
}

function finishWithStop(choice: JsonObject): JsonObject {
  return choice['finish_reason'] === null ? choice : { ...choice, finish_reason: 'stop' };
}

function addExtraChoice(_: Frame, chunk: JsonObject): JsonObject {
  return isRehearsalList(chunk['choices']) && chunk['choices'].length > 0
    ? { ...chunk, choices: [...chunk['choices'], EXTRA_CHOICE] }
    : chunk;
}

const EXTRA_CHOICE = {
  index: 1,
  delta: { role: 'assistant', content: 'another choice' },
  logprobs: null,
  finish_reason: null,
};

function spoilEachChoice(frames: Iterable<Frame>, change: (choice: JsonObject) => JsonObject): Iterable<Frame> {
  return faultChangingFrames(frames, (_, chunk) => ({
    ...chunk,
    choices: rehearsalObjectsIn(chunk['choices']).map(change),
  }));
}

function spoilEachDelta(frames: Iterable<Frame>, change: (delta: JsonObject) => JsonObject): Iterable<Frame> {
  return spoilEachChoice(frames, (choice) =>
    isRehearsalObject(choice['delta']) ? { ...choice, delta: change(choice['delta']) } : choice,
  );
}

/** `nth` counts the deltas of one call from 0; `name` is the name of the call. */
function spoilEachChatCall(
  frames: Iterable<Frame>,
  change: (call: JsonObject, nth: number, name: string) => JsonObject,
): Iterable<Frame> {
  const seen = new Map<Json | undefined, { count: number; readonly name: string }>();
  return spoilEachDelta(frames, (delta) => {
    if (!isRehearsalList(delta['tool_calls'])) return delta;
    const calls = rehearsalObjectsIn(delta['tool_calls']).map((call) => {
      const known = seen.get(call['index']) ?? {
        count: 0,
        name: isRehearsalObject(call['function']) ? rehearsalText(call['function']['name']) : '',
      };
      seen.set(call['index'], known);
      return change(call, known.count++, known.name);
    });
    return { ...delta, tool_calls: calls };
  });
}

function faultyArgumentsOf(call: JsonObject): Json {
  return isRehearsalObject(call['function']) ? (call['function']['arguments'] ?? '') : '';
}

function faultRepeatingFrames(frames: Iterable<Frame>): Iterable<Frame> {
  const ids = new Map<Json | undefined, Json>();
  return spoilEachChatCall(frames, (call, _, name) => {
    if (call['id'] !== undefined) ids.set(call['index'], call['id']);
    return {
      ...call,
      id: ids.get(call['index']) ?? null,
      type: 'function',
      function: { name, arguments: faultyArgumentsOf(call) },
    };
  });
}

function* faultOfWholeCalls(frames: Iterable<Frame>): Generator<Frame> {
  let pending:
    | { readonly frame: Frame; readonly chunk: JsonObject; readonly call: JsonObject; args: string }
    | undefined;
  const flush = function* (): Generator<Frame> {
    if (pending === undefined) return;
    const { frame, chunk, call, args } = pending;
    const named = isRehearsalObject(call['function']) ? call['function'] : {};
    const choices = [
      {
        index: 0,
        delta: { tool_calls: [{ ...call, function: { ...named, arguments: args } }] },
        logprobs: null,
        finish_reason: null,
      },
    ];
    yield { ...frame, data: JSON.stringify({ ...chunk, choices }) };
    pending = undefined;
  };
  for (const frame of frames) {
    const chunk: JsonObject = frame.data.startsWith('{') ? JSON.parse(frame.data) : {};
    const delta = rehearsalObjectsIn(chunk['choices'])[0]?.['delta'];
    const call = isRehearsalObject(delta) ? rehearsalObjectsIn(delta['tool_calls'])[0] : undefined;
    if (call === undefined) {
      yield* flush();
      yield frame;
    } else if (pending === undefined || pending.call['index'] !== call['index']) {
      yield* flush();
      pending = { frame, chunk, call, args: rehearsalText(faultyArgumentsOf(call)) };
    } else {
      pending.args += rehearsalText(faultyArgumentsOf(call));
    }
  }
  yield* flush();
}

function isUsageFrame({ kind, data }: Frame): boolean {
  return kind === 'other' && data.includes('"usage":{');
}

function* faultWithoutFrames(frames: Iterable<Frame>, drop: (frame: Frame) => boolean): Generator<Frame> {
  for (const frame of frames) if (!drop(frame)) yield frame;
}

function* faultWithUsageAnyway(frames: Iterable<Frame>, { usage }: Reply): Generator<Frame> {
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const total = { prompt_tokens: prompt, completion_tokens: usage.output, total_tokens: prompt + usage.output };
  let last: Frame | undefined;
  for (const frame of faultWithoutFrames(frames, isUsageFrame)) {
    if (frame.kind === 'end' && last !== undefined)
      yield* faultChangingFrames([last], (_, chunk) => ({
        ...chunk,
        choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null }],
        usage: total,
      }));
    last = frame;
    yield frame;
  }
}

function* faultWithThinking(
  frames: Iterable<Frame>,
  reply: Reply,
  delta: (text: string) => JsonObject,
): Generator<Frame> {
  const text = reply.parts.map((part) => (part.type === 'thinking' ? part.text : '')).join('');
  for (const frame of frames) {
    yield frame;
    if (frame.kind === 'start' && text !== '')
      yield* faultChangingFrames([{ ...frame, kind: 'content' }], (_, chunk) => ({
        ...chunk,
        choices: [{ index: 0, delta: delta(text), logprobs: null, finish_reason: null }],
      }));
  }
}

function* faultWithNullDeltas(frames: Iterable<Frame>): Generator<Frame> {
  for (const frame of frames) {
    yield frame;
    if (frame.kind === 'start')
      yield* faultChangingFrames([{ ...frame, kind: 'other' }], (_, chunk) => ({
        ...chunk,
        choices: [{ index: 0, delta: null, logprobs: null, finish_reason: null }],
      }));
  }
}
