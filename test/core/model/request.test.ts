// The builder of requests, given histories that no server would accept unchanged.

import { modelImageSize } from '@drover/core/model/image-size';
import type { AssistantMessage, ImagePart, Message } from '@drover/protocol/messages';
import type { RequestMessage } from '@drover/protocol/model';
import type { WireLimits } from '@drover/core/model/provider';
import { buildModelRequest } from '@drover/core/model/request';
import { expect, test } from 'vitest';

const LIMITS: WireLimits = {
  callIdPattern: /^[a-z0-9_]+$/,
  callIdCharsMax: 12,
  cacheMarksMax: 4,
  leadingTypes: [],
  bodyBytesMax: 1_000_000,
  imageBytesMax: 400_000,
};
const NONE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

const user = (text: string, ...images: ImagePart[]): Message => ({
  role: 'user',
  content: [{ type: 'text', text }, ...images],
});
const calls = (...ids: string[]): AssistantMessage => ({
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool_call', id, name: 'read', args: { path: id } })),
  stop: 'tool_calls',
  usage: NONE,
});
const results = (...pairs: (readonly [id: string, output: string])[]): Message => ({
  role: 'tool',
  results: pairs.map(([id, output]) => ({ id, name: 'read', output, isError: false })),
});

function built(messages: readonly Message[], limits: Partial<WireLimits> = {}): readonly RequestMessage[] {
  return buildModelRequest({
    provider: { id: 'here', limits: { ...LIMITS, ...limits } },
    model: 'model',
    system: '',
    tools: [],
    messages,
    outputTokensMax: 1,
    cacheKey: '',
  }).messages;
}

/** Role and text of each message, one per line. */
function told(messages: readonly RequestMessage[]): string[] {
  return messages.map((message) => {
    const parts =
      message.role === 'user'
        ? [...message.results.map(({ id, output }) => `${id}=${output}`), ...message.content.map(partTold)]
        : message.content.map((part) => (part.type === 'tool_call' ? `calls ${part.id}` : part.type));
    return `${message.role}: ${parts.join(', ')}`;
  });
}

const partTold = (part: { type: string; text?: string }): string => part.text ?? part.type;

test('the second result of an id belongs to the second call of that id', () => {
  const messages = [user('go'), calls('same', 'same'), results(['same', 'first'], ['same', 'second'])];
  expect(told(built(messages))).toEqual([
    'user: go',
    'assistant: calls same, calls call_1',
    'user: same=first, call_1=second',
  ]);
});

test('an id that is used again in a later answer gets the results of that answer', () => {
  const messages = [user('go'), calls('a'), calls('a'), results(['a', 'of the second'])];
  const [, , between, , last] = built(messages);
  expect(between?.role === 'user' && between.results[0]?.isError).toBe(true);
  expect(told(last === undefined ? [] : [last])).toEqual(['user: call_1=of the second']);
});

test('consecutive user messages become one message, results first', () => {
  const messages = [user('one'), user('two'), calls('a'), user('meanwhile'), results(['a', 'done']), user('and?')];
  expect(told(built(messages))).toEqual(['user: one, two', 'assistant: calls a', 'user: a=done, meanwhile, and?']);
});

test('consecutive answers become one message', () => {
  expect(told(built([user('go'), says('a'), says('b'), user('and?')]))).toEqual([
    'user: go',
    'assistant: text, text',
    'user: and?',
  ]);
});

const says = (...texts: string[]): AssistantMessage => ({
  ...calls(),
  content: texts.map((text) => ({ type: 'text', text })),
  stop: 'stop',
});

test.each(['', ' ', '\n\t', '\u0085', '\u001c'])('no text is blank: %j is left out, or named in a result', (blank) => {
  const messages = [
    user('go'),
    user(blank),
    says(blank, 'So.'),
    says(blank),
    user('and?'),
    calls('a'),
    results(['a', blank]),
  ];
  expect(told(built(messages))).toEqual([
    'user: go',
    'assistant: text',
    'user: and?',
    'assistant: calls a',
    'user: a=(no output)',
  ]);
});

test('the first and the last message are the user’s', () => {
  expect(told(built([says('Hello.'), user('go'), says('Done.')]))).toEqual([
    'user: Go on.',
    'assistant: text',
    'user: go',
    'assistant: text',
    'user: Go on.',
  ]);
});

test('no string holds half a surrogate pair', () => {
  const torn = 'a\ud800b';
  const asks: AssistantMessage = {
    ...calls(),
    content: [
      { type: 'text', text: torn },
      { type: 'tool_call', id: 'a', name: 'read', args: { [torn]: [torn, { deep: torn }] } },
    ],
    native: { provider: 'here', model: 'model', items: [{ part: 0, payload: { [torn]: torn } }] },
  };
  const request = buildModelRequest({
    provider: { id: 'here', limits: LIMITS },
    model: 'model',
    system: torn,
    tools: [],
    messages: [user(torn), asks, results(['a', torn])],
    outputTokensMax: 1,
    cacheKey: '',
  });
  expect(JSON.stringify(request)).not.toMatch(/\\ud800/);
  expect(JSON.stringify(request).match(/a\uFFFDb/g)).toHaveLength(9);
});

test('arguments that are not an object become empty', () => {
  const odd: Message = { ...calls(), content: [{ type: 'tool_call', id: 'a', name: 'read', args: ['x'] }] };
  const [, message] = built([user('go'), odd]);
  expect(message?.role === 'assistant' && message.content[0]).toEqual({
    type: 'tool_call',
    id: 'a',
    name: 'read',
    args: {},
  });
});

test.each([
  ['another model', { provider: 'here', model: 'other' }],
  ['another provider', { provider: 'elsewhere', model: 'model' }],
])('content that %s sealed is not sent here', (_, from) => {
  const sealed: Message = {
    ...calls(),
    content: [
      { type: 'thinking', text: 'Hm.' },
      { type: 'text', text: 'So.' },
    ],
    native: {
      ...from,
      items: [
        { part: 0, payload: { signature: 'x' } },
        { before: 1, payload: { type: 'sealed' } },
      ],
    },
  };
  expect(told(built([user('go'), sealed, user('and?')]))[1]).toBe('assistant: text');
});

test('thinking that led to nothing is left out, with an answer that is only thinking', () => {
  const thinks = (...content: AssistantMessage['content']): Message => ({
    ...calls(),
    content: [{ type: 'thinking', text: 'Hm.' }, ...content],
    native: { provider: 'here', model: 'model', items: [{ part: 0, payload: { signature: 'x' } }] },
  });
  expect(told(built([user('go'), thinks(), user('and?')]))).toEqual(['user: go, and?']);
  expect(told(built([user('go'), thinks({ type: 'text', text: 'So.' }), user('and?')]))[1]).toBe(
    'assistant: thinking, text',
  );
});

test('unsigned thinking is left out for every provider', () => {
  const unsigned: Message = {
    ...calls(),
    content: [
      { type: 'thinking', text: 'Hm.' },
      { type: 'text', text: 'So.' },
    ],
  };
  expect(told(built([user('go'), unsigned, user('and?')]))[1]).toBe('assistant: text');
});

test('tool names are rewritten to names that providers accept', () => {
  const named = (name: string): Message => ({
    ...calls(),
    content: [{ type: 'tool_call', id: 'a', name, args: {} }],
  });
  const names = ['functions.read', 'no such tool', '', 'x'.repeat(200)].map((name) => {
    const [, message] = built([user('go'), named(name)]);
    const [part] = message?.role === 'assistant' ? message.content : [];
    return part?.type === 'tool_call' ? part.name : undefined;
  });
  expect(names).toEqual(['functions_read', 'no_such_tool', 'unknown', 'x'.repeat(64)]);
});

test('ids are rewritten by position, so equal histories have equal ids', () => {
  const messages = [user('go'), calls('an id', 'an id', 'much_too_long_an_id'), results(['an id', 'x'])];
  expect(built(messages)).toEqual(built(structuredClone(messages)));
  expect(told(built(messages))[1]).toBe('assistant: calls call_0, calls call_1, calls call_2');
});

test.each([
  [4, [false, true, true]],
  [2, [false, false, true]],
  [0, [false, false, false]],
])('of %i cache marks one is for the system prompt, the rest for user messages', (max, marks) => {
  const messages = [user('a'), calls('x'), results(['x', '1']), calls('y'), results(['y', '2'])];
  const made = built(messages, { cacheMarksMax: max });
  expect(made.flatMap((message) => (message.role === 'user' ? [message.cacheMark] : []))).toEqual(marks);
});

/** A PNG with these dimensions in pixels and this length in base64. */
function image(side: number, chars = 100): ImagePart {
  const bytes = Buffer.alloc((chars * 3) / 4);
  bytes.write('\x89PNG\r\n\x1a\n', 'latin1');
  bytes.writeUInt32BE(side, 16);
  bytes.writeUInt32BE(10, 20);
  return { type: 'image', mediaType: 'image/png', data: bytes.toString('base64') };
}

const kept = (messages: readonly RequestMessage[]): number =>
  messages.flatMap((message) => (message.role === 'user' ? message.content : [])).filter(({ type }) => type === 'image')
    .length;

test('an image with too many pixels or bytes is named instead', () => {
  const [message] = built([user('look', image(8_001), image(10, 400_004), image(8_000))]);
  expect(message?.role === 'user' && message.content.map(partTold)).toEqual([
    'look',
    '[An image stood here; it is too large to be sent.]',
    '[An image stood here; it is too large to be sent.]',
    'image',
  ]);
});

test('with more than twenty images each has at most 2,000 pixels a side', () => {
  const images = (count: number) => Array.from({ length: count }, (_, n) => image(n === 0 ? 2_001 : 2_000));
  expect([kept(built([user('', ...images(20))])), kept(built([user('', ...images(21))]))]).toEqual([20, 20]);
});

test('of more than a hundred images the newest hundred are sent', () => {
  const images = Array.from({ length: 103 }, (_, n) => image(n + 1));
  const sent = built([user('', ...images)]).flatMap((message) => (message.role === 'user' ? message.content : []));
  const sides = sent.flatMap((part) => (part.type === 'image' ? [modelImageSize(part.data)?.width] : []));
  expect(sides).toEqual(Array.from({ length: 100 }, (_, n) => n + 4));
});

test('the newest images are sent, as many as fit the body', () => {
  const [old, ...rest] = [image(1, 300_000), image(2, 300_000), image(3, 300_000)];
  const sent = built([
    user('x'.repeat(200_000), ...(old ? [old] : [])),
    calls('a'),
    results(['a', 'ok']),
    user('', ...rest),
  ]);
  expect(kept(sent)).toBe(2);
  expect(JSON.stringify(sent).length).toBeLessThan(LIMITS.bodyBytesMax);
});
