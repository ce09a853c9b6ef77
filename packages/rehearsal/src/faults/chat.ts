// Dialects of Chat Completions: deviations of compatible servers from the original.

import { isList, isObject, objectsIn, textOf, type Json, type JsonObject } from '../json.ts';
import type { Frame, Reply } from '../wire/wire.ts';
import type { FaultName } from './fault.ts';
import { changed } from './stream.ts';

export function chatDialect(frames: Iterable<Frame>, fault: FaultName, reply: Reply): Iterable<Frame> {
  switch (fault) {
    case 'chat-no-index':
      return eachCall(frames, (call) => lacking(call, 'index'));
    case 'chat-no-id':
      return eachCall(frames, (call) => lacking(call, 'id'));
    case 'chat-id-changes':
      return eachCall(frames, (call, nth) => ({ ...call, id: `call_changing_${Number(call['index'])}_${nth}` }));
    case 'chat-id-repeated':
      return repeated(frames);
    case 'chat-name-late':
      return eachCall(frames, (call, nth, name) => ({
        ...call,
        function: { arguments: argumentsOf(call), ...(nth === 1 && { name }) },
      }));
    case 'chat-nulls':
      return eachCall(frames, (call, nth) =>
        nth === 0 ? call : { ...call, id: null, type: null, function: { name: null, arguments: argumentsOf(call) } },
      );
    case 'chat-whole-call':
      return wholeCalls(frames);
    case 'chat-finish-stop':
      return eachChoice(frames, (choice) =>
        choice['finish_reason'] === null ? choice : { ...choice, finish_reason: 'stop' },
      );
    case 'chat-no-finish':
      return without(frames, ({ kind }) => kind === 'stop');
    case 'chat-usage-null':
      return changed(without(frames, isUsage), (_, chunk) => ({ ...chunk, usage: null }));
    case 'chat-usage-absent':
      return changed(without(frames, isUsage), (_, chunk) => lacking(chunk, 'usage'));
    case 'chat-usage-extra':
      return usageAnyway(frames, reply);
    case 'chat-content-array':
      return eachDelta(frames, (delta) =>
        textOf(delta['content']) === ''
          ? delta
          : { ...delta, content: [{ type: 'text', text: textOf(delta['content']) }] },
      );
    case 'chat-reasoning':
      return thinking(frames, reply, (text) => ({ reasoning: text }));
    case 'chat-reasoning-content':
      return thinking(frames, reply, (text) => ({ reasoning_content: text }));
    case 'chat-think-tags':
      return thinking(frames, reply, (text) => ({ content: `<think>${text}</think>` }));
    case 'chat-no-role':
      return eachDelta(frames, (delta) => lacking(delta, 'role'));
    case 'chat-extra-choices':
      return changed(frames, (_, chunk) =>
        isList(chunk['choices']) && chunk['choices'].length > 0
          ? { ...chunk, choices: [...chunk['choices'], EXTRA_CHOICE] }
          : chunk,
      );
    case 'chat-null-delta':
      return nullDeltas(frames);
    default:
      return frames;
  }
}

function lacking(value: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
}

const EXTRA_CHOICE = {
  index: 1,
  delta: { role: 'assistant', content: 'another choice' },
  logprobs: null,
  finish_reason: null,
};

function eachChoice(frames: Iterable<Frame>, change: (choice: JsonObject) => JsonObject): Iterable<Frame> {
  return changed(frames, (_, chunk) => ({ ...chunk, choices: objectsIn(chunk['choices']).map(change) }));
}

function eachDelta(frames: Iterable<Frame>, change: (delta: JsonObject) => JsonObject): Iterable<Frame> {
  return eachChoice(frames, (choice) =>
    isObject(choice['delta']) ? { ...choice, delta: change(choice['delta']) } : choice,
  );
}

/** `nth` counts the deltas of one call from 0; `name` is the name of the call. */
function eachCall(
  frames: Iterable<Frame>,
  change: (call: JsonObject, nth: number, name: string) => JsonObject,
): Iterable<Frame> {
  const seen = new Map<Json | undefined, { count: number; readonly name: string }>();
  return eachDelta(frames, (delta) => {
    if (!isList(delta['tool_calls'])) return delta;
    const calls = objectsIn(delta['tool_calls']).map((call) => {
      const known = seen.get(call['index']) ?? {
        count: 0,
        name: isObject(call['function']) ? textOf(call['function']['name']) : '',
      };
      seen.set(call['index'], known);
      return change(call, known.count++, known.name);
    });
    return { ...delta, tool_calls: calls };
  });
}

function argumentsOf(call: JsonObject): Json {
  return isObject(call['function']) ? (call['function']['arguments'] ?? '') : '';
}

function repeated(frames: Iterable<Frame>): Iterable<Frame> {
  const ids = new Map<Json | undefined, Json>();
  return eachCall(frames, (call, _, name) => {
    if (call['id'] !== undefined) ids.set(call['index'], call['id']);
    return {
      ...call,
      id: ids.get(call['index']) ?? null,
      type: 'function',
      function: { name, arguments: argumentsOf(call) },
    };
  });
}

function* wholeCalls(frames: Iterable<Frame>): Generator<Frame> {
  let pending:
    | { readonly frame: Frame; readonly chunk: JsonObject; readonly call: JsonObject; args: string }
    | undefined;
  const flush = function* (): Generator<Frame> {
    if (pending === undefined) return;
    const { frame, chunk, call, args } = pending;
    const named = isObject(call['function']) ? call['function'] : {};
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
    const delta = objectsIn(chunk['choices'])[0]?.['delta'];
    const call = isObject(delta) ? objectsIn(delta['tool_calls'])[0] : undefined;
    if (call === undefined) {
      yield* flush();
      yield frame;
    } else if (pending === undefined || pending.call['index'] !== call['index']) {
      yield* flush();
      pending = { frame, chunk, call, args: textOf(argumentsOf(call)) };
    } else {
      pending.args += textOf(argumentsOf(call));
    }
  }
  yield* flush();
}

function isUsage({ kind, data }: Frame): boolean {
  return kind === 'other' && data.includes('"usage":{');
}

function* without(frames: Iterable<Frame>, drop: (frame: Frame) => boolean): Generator<Frame> {
  for (const frame of frames) if (!drop(frame)) yield frame;
}

function* usageAnyway(frames: Iterable<Frame>, { usage }: Reply): Generator<Frame> {
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  const total = { prompt_tokens: prompt, completion_tokens: usage.output, total_tokens: prompt + usage.output };
  let last: Frame | undefined;
  for (const frame of without(frames, isUsage)) {
    if (frame.kind === 'end' && last !== undefined)
      yield* changed([last], (_, chunk) => ({
        ...chunk,
        choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null }],
        usage: total,
      }));
    last = frame;
    yield frame;
  }
}

function* thinking(frames: Iterable<Frame>, reply: Reply, delta: (text: string) => JsonObject): Generator<Frame> {
  const text = reply.parts.map((part) => (part.type === 'thinking' ? part.text : '')).join('');
  for (const frame of frames) {
    yield frame;
    if (frame.kind === 'start' && text !== '')
      yield* changed([{ ...frame, kind: 'content' }], (_, chunk) => ({
        ...chunk,
        choices: [{ index: 0, delta: delta(text), logprobs: null, finish_reason: null }],
      }));
  }
}

function* nullDeltas(frames: Iterable<Frame>): Generator<Frame> {
  for (const frame of frames) {
    yield frame;
    if (frame.kind === 'start')
      yield* changed([{ ...frame, kind: 'other' }], (_, chunk) => ({
        ...chunk,
        choices: [{ index: 0, delta: null, logprobs: null, finish_reason: null }],
      }));
  }
}
