// Dialects of Chat Completions servers, shown by the chunks in which they differ.

import { expect, test } from 'vitest';
import type { FaultName } from '@drover/rehearsal/faults/fault';
import type { Json, JsonObject } from '@drover/rehearsal/json';
import { at, dataIn } from '../clients.ts';
import { faultOf, got, named } from '../tales.ts';

const delta = (json: string): string => `{"choices":[{"index":0,"delta":${json}}],"usage":null}`;
const call = (json: string): string => delta(`{"tool_calls":[${json}]}`);

type Part = 'role' | 'early' | 'text' | 'open' | 'args' | 'finish' | 'usage' | 'done';
type Parts = Readonly<Partial<Record<Part, string | undefined>>>;

/** The chunks of the answer without a fault, in wire order. */
const PLAIN: Parts = {
  role: delta('{"role":"assistant","content":""}'),
  early: undefined,
  text: delta('{"content":"Sheep 🐑"}'),
  open: call('{"index":0,"id":"ID","function":{"name":"read","arguments":""}}'),
  args: call('{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}'),
  finish: '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}',
  usage: '{"choices":[],"usage":7}',
  done: '[DONE]',
};

const besides = (choice: string): string =>
  `{"choices":[${choice},{"index":1,"delta":{"role":"assistant","content":"another choice"}}],"usage":null}`;

const DIALECTS: readonly (readonly [FaultName, Parts])[] = [
  [
    'chat-no-index',
    {
      open: call('{"id":"ID","function":{"name":"read","arguments":""}}'),
      args: call('{"function":{"arguments":"{\\"path\\":\\"a\\"}"}}'),
    },
  ],
  ['chat-no-id', { open: call('{"index":0,"function":{"name":"read","arguments":""}}') }],
  [
    'chat-id-changes',
    {
      open: call('{"index":0,"id":"call_changing_0_0","function":{"name":"read","arguments":""}}'),
      args: call('{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"},"id":"call_changing_0_1"}'),
    },
  ],
  [
    'chat-id-repeated',
    { args: call('{"index":0,"function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"},"id":"ID"}') },
  ],
  [
    'chat-name-late',
    {
      open: call('{"index":0,"id":"ID","function":{"arguments":""}}'),
      args: call('{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}","name":"read"}}'),
    },
  ],
  [
    'chat-nulls',
    { args: call('{"index":0,"function":{"name":null,"arguments":"{\\"path\\":\\"a\\"}"},"id":null,"type":null}') },
  ],
  [
    'chat-whole-call',
    {
      open: call('{"index":0,"id":"ID","function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"}}'),
      args: undefined,
    },
  ],
  ['chat-finish-stop', { finish: '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}' }],
  ['chat-no-finish', { finish: undefined }],
  ['chat-usage-null', { usage: undefined }],
  ['chat-usage-extra', { usage: '{"choices":[{"index":0,"delta":{}}],"usage":7}' }],
  [
    'chat-usage-absent',
    {
      role: '{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}',
      text: '{"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}]}',
      open: '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}]}',
      args: '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}]}',
      finish: '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
      usage: undefined,
    },
  ],
  ['chat-content-array', { text: delta('{"content":[{"type":"text","text":"Sheep 🐑"}]}') }],
  ['chat-reasoning', { early: delta('{"reasoning":"Hm"}') }],
  ['chat-reasoning-content', { early: delta('{"reasoning_content":"Hm"}') }],
  ['chat-think-tags', { early: delta('{"content":"<think>Hm</think>"}') }],
  ['chat-no-role', { role: delta('{"content":""}') }],
  [
    'chat-extra-choices',
    {
      role: besides('{"index":0,"delta":{"role":"assistant","content":""}}'),
      text: besides('{"index":0,"delta":{"content":"Sheep 🐑"}}'),
      open: besides(
        '{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}',
      ),
      args: besides('{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}'),
      finish: besides('{"index":0,"delta":{},"finish_reason":"tool_calls"}'),
    },
  ],
  ['chat-null-delta', { early: delta('null') }],
];

/** A chunk without empty fields and those that differ between runs. */
function told(chunk: Json): string {
  if (typeof chunk === 'string') return chunk;
  const { choices, usage } = chunk as JsonObject;
  return JSON.stringify({
    choices,
    ...(usage !== undefined && {
      usage: typeof usage === 'object' && usage !== null ? at(usage, 'total_tokens') : usage,
    }),
  })
    .replaceAll(/"logprobs":null,?|"finish_reason":null,?|"refusal":null,?|"type":"function",?/g, '')
    .replaceAll(/call_\w{24}/g, 'ID')
    .replaceAll(/,([}\]])/g, '$1');
}

test('faults in the dialects of Chat Completions', async () => {
  const all = named('chat').map(async (name) => {
    const { body } = await got('openai-chat', faultOf(name), { stream: true, stream_options: { include_usage: true } });
    return [name, ...dataIn(body).map(told)];
  });
  expect(await Promise.all(all)).toEqual(
    DIALECTS.map(([name, parts]) => [
      name,
      ...Object.values({ ...PLAIN, ...parts }).filter((chunk) => chunk !== undefined),
    ]),
  );
});
