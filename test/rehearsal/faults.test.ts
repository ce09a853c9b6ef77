// Every fault there is, told as what a client gets.

import { expect, test } from 'vitest';
import { FAULTS, factsOf, toFault, type Fault, type FaultLevel, type FaultName } from '@drover/rehearsal/faults/fault';
import { shown, type Json, type JsonObject } from '@drover/rehearsal/json';
import type { Answer } from '@drover/rehearsal/script';
import type { Api } from '@drover/rehearsal/wire/wire';
import { APIS, at, dataIn, requestFor, send, stage, textAt } from './clients.ts';

const ANSWER: Answer = { thinking: 'Hm', text: 'Sheep 🐑', calls: [{ name: 'read', args: { path: 'a' } }] };
const NAMES = Object.keys(FAULTS) as FaultName[];
const SETTINGS: Partial<Record<FaultName, JsonObject>> = {
  status: { status: 529, headers: { 'retry-after': '7' } },
  redirect: { location: 'http://127.0.0.1:9/elsewhere' },
  'pings-only': { everyMs: 5 },
  'comments-only': { everyMs: 5 },
  'huge-event': { bytes: 100_000 },
  'endless-line': { bytes: 200_000 },
};

const faultOf = (name: FaultName): Fault => ({ fault: name, ...SETTINGS[name] }) as Fault;
const named = (level: FaultLevel): readonly FaultName[] => NAMES.filter((name) => factsOf(name).level === level);

const STALLS: readonly (FaultName | undefined)[] = [
  'no-headers',
  'no-first-byte',
  'silence',
  'pings-only',
  'comments-only',
];

type Got = { readonly status: number; readonly headers: Headers; readonly body: string; readonly ending: string };

/** What arrives within a moment, and whether the response then ended, broke or is still open. */
async function got(api: Api, fault: Fault | undefined, more: JsonObject = { stream: true }): Promise<Got> {
  const { server } = await stage({ answers: [ANSWER], ...(fault && { faults: [{ ...fault, at: 1 }] }) });
  const gone = new AbortController();
  const patience = setTimeout(() => gone.abort(), STALLS.includes(fault?.fault) ? 1_500 : 15_000);
  const pieces: Buffer[] = [];
  let opened: Response | undefined;
  let ending = 'ended';
  try {
    opened = await send(server, api, { body: requestFor(api, more), signal: gone.signal });
    for await (const piece of opened.body ?? []) pieces.push(Buffer.from(piece));
  } catch {
    ending = gone.signal.aborted ? 'open' : 'broken';
  }
  clearTimeout(patience);
  return {
    status: opened?.status ?? 0,
    headers: opened?.headers ?? new Headers(),
    body: Buffer.concat(pieces).toString(),
    ending,
  };
}

const TOLD = [
  'index',
  'content_block.type',
  'content_block.name',
  'content_block.id',
  'content_block.input',
  'item.type',
  'error.message',
  'response.error.message',
  'choices.0.finish_reason',
  'usage.total_tokens',
];
const UNTOLD = new Set(['type', 'stop_sequence', 'stop_details', 'container', 'refusal', 'signature']);

/** One event in a few words. */
function told(event: Json): string {
  if (typeof event === 'string') return event.slice(0, 20);
  const type = textAt(event, 'type').replace(/^content_block_|^response\./, '');
  const delta = at(event, 'delta') ?? at(event, 'choices.0.delta') ?? null;
  const pieces =
    typeof delta === 'object'
      ? Object.entries((delta ?? {}) as JsonObject).map(([key, value]) => (UNTOLD.has(key) ? '' : (value ?? '')))
      : [delta];
  const facts = [type, ...TOLD.map((path) => textAt(event, path)), ...pieces.map((piece) => shown(piece))];
  return facts
    .filter((fact) => fact !== '' && fact !== '{}')
    .join(' ')
    .replaceAll(/(call|toolu)_\w{24}/g, 'ID');
}

const firstApi = (name: FaultName): Api => factsOf(name).apis[0] ?? 'anthropic';

async function tale(name: FaultName, api = firstApi(name)): Promise<string> {
  const { status, body, ending } = await got(api, faultOf(name));
  const events = body.startsWith('{') ? [body.slice(0, 100)] : dataIn(body).map(told);
  const runs = events.filter((event, index) => event !== events[index - 1]);
  return `${name}: ${status} ${runs.join(' | ')} → ${ending}`;
}

async function tales(level: FaultLevel): Promise<string> {
  return (await Promise.all(named(level).map((name) => tale(name)))).join('\n');
}

test('in place of an answer', async () => {
  expect(await tales('instead')).toMatchInlineSnapshot(`
    "status: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"} → ended
    redirect: 307  → ended
    ok-error: 200 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"} → ended
    no-headers: 0  → open
    no-first-byte: 200  → open
    drop: 0  → broken"
  `);
});

test('in the stream', async () => {
  expect(await tales('stream')).toMatchInlineSnapshot(`
    "whole-json: 200 {"id":"msg_b7c1660b06af433b4558414d","type":"message","role":"assistant","model":"m","content":[{"ty → ended
    error-event: 200 message_start | start 0 thinking | ping | delta 0 Hm | error Overloaded → ended
    failed: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | failed The server had an error while processing your request. → ended
    cut: 200 message_start | start 0 thinking | ping | delta 0 Hm → ended
    reset: 200 message_start | start 0 thinking | ping | delta 0 Hm → broken
    silence: 200 message_start | start 0 thinking | ping | delta 0 Hm → open
    pings-only: 200 message_start | start 0 thinking | ping | delta 0 Hm | ping → open
    comments-only: 200 message_start | start 0 thinking | ping | delta 0 Hm → open
    huge-event: 200 message_start | start 0 thinking | ping | delta 0 Hm | padding | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    endless-line: 200 message_start | start 0 thinking | ping | delta 0 Hm | {"type":"xxxxxxxxxxx → ended
    no-end: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use → ended
    not-json: 200 message_start | start 0 thinking | ping | delta 0 Hm | {"type": oops | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    unknown-events: 200 message_start | start 0 thinking | ping | mystery 0 ? | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    after-end: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop | delta 2 {"path":"a"} → ended
    second-start: 200 message_start | start 0 thinking | ping | delta 0 Hm | message_start | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    index-gaps: 200 message_start | start 1 thinking | ping | delta 1 Hm | delta 1 | stop 1 | start 4 text | delta 4 Sheep 🐑 | stop 4 | start 7 tool_use read ID | delta 7 | delta 7 {"path":"a"} | stop 7 | message_delta tool_use | message_stop → ended
    interleaved-blocks: 200 message_start | start 0 thinking | start 1 text | start 2 tool_use read ID | delta 0 Hm | delta 1 Sheep 🐑 | delta 2 | delta 0 | delta 2 {"path":"a"} | stop 0 | stop 1 | stop 2 | ping | message_delta tool_use | message_stop → ended
    unknown-block: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 99 | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    empty-output: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | output_text.delta Sheep 🐑 | output_text.done | content_part.done | output_item.done message | output_item.added function_call | function_call_arguments.delta {"path":"a"} | function_call_arguments.done | output_item.done function_call | completed → ended"
  `);
});

test('in the stream of Responses and Chat Completions', async () => {
  const names: readonly FaultName[] = [
    'error-event',
    'cut',
    'reset',
    'pings-only',
    'not-json',
    'unknown-events',
    'after-end',
    'second-start',
    'no-end',
  ];
  const all = names.flatMap((name) =>
    (['openai', 'openai-chat'] as const).map(async (api) => `${api} ${await tale(name, api)}`),
  );
  expect((await Promise.all(all)).join('\n')).toMatchInlineSnapshot(`
    "openai error-event: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | error → ended
    openai-chat error-event: 200 assistant | Sheep 🐑 | The server had an error while processing your request. → ended
    openai cut: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added → ended
    openai-chat cut: 200 assistant | Sheep 🐑 → ended
    openai reset: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added → broken
    openai-chat reset: 200 assistant | Sheep 🐑 → broken
    openai pings-only: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added → open
    openai-chat pings-only: 200 assistant | Sheep 🐑 → open
    openai not-json: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | {"type": oops | output_text.delta Sheep 🐑 | output_text.done | content_part.done | output_item.done message | output_item.added function_call | function_call_arguments.delta {"path":"a"} | function_call_arguments.done | output_item.done function_call | completed → ended
    openai-chat not-json: 200 assistant | Sheep 🐑 | {"type": oops | [{"index":0,"id":"ID","type":"function","function":{"name":"read","arguments":""}}] | [{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}] | tool_calls | [DONE] → ended
    openai unknown-events: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | mystery.delta ? | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | output_text.delta Sheep 🐑 | output_text.done | content_part.done | output_item.done message | output_item.added function_call | function_call_arguments.delta {"path":"a"} | function_call_arguments.done | output_item.done function_call | completed → ended
    openai-chat unknown-events: 200 assistant |  | Sheep 🐑 | [{"index":0,"id":"ID","type":"function","function":{"name":"read","arguments":""}}] | [{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}] | tool_calls | [DONE] → ended
    openai after-end: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | output_text.delta Sheep 🐑 | output_text.done | content_part.done | output_item.done message | output_item.added function_call | function_call_arguments.delta {"path":"a"} | function_call_arguments.done | output_item.done function_call | completed | function_call_arguments.delta {"path":"a"} → ended
    openai-chat after-end: 200 assistant | Sheep 🐑 | [{"index":0,"id":"ID","type":"function","function":{"name":"read","arguments":""}}] | [{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}] | tool_calls | [DONE] | [{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}] → ended
    openai second-start: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | created | output_text.delta Sheep 🐑 | output_text.done | content_part.done | output_item.done message | output_item.added function_call | function_call_arguments.delta {"path":"a"} | function_call_arguments.done | output_item.done function_call | completed → ended
    openai-chat second-start: 200 assistant | Sheep 🐑 | assistant | [{"index":0,"id":"ID","type":"function","function":{"name":"read","arguments":""}}] | [{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}] | tool_calls | [DONE] → ended
    openai no-end: 200 created | in_progress | output_item.added reasoning | reasoning_summary_part.added | reasoning_summary_text.delta Hm | reasoning_summary_text.done | reasoning_summary_part.done | output_item.done reasoning | output_item.added message | content_part.added | output_text.delta Sheep 🐑 | output_text.done | content_part.done | output_item.done message | output_item.added function_call | function_call_arguments.delta {"path":"a"} | function_call_arguments.done | output_item.done function_call | completed → ended
    openai-chat no-end: 200 assistant | Sheep 🐑 | [{"index":0,"id":"ID","type":"function","function":{"name":"read","arguments":""}}] | [{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}] | tool_calls → ended"
  `);
});

test('in what the model says', async () => {
  expect(await tales('content')).toMatchInlineSnapshot(`
    "args-empty: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | stop 2 | message_delta tool_use | message_stop → ended
    args-null: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | stop 2 | message_delta tool_use | message_stop → ended
    args-object: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID {"path":"a"} | delta 2 | stop 2 | message_delta tool_use | message_stop → ended
    args-double: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 "{\\"path\\":\\"a\\" | delta 2 }" | stop 2 | message_delta tool_use | message_stop → ended
    args-garbage: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"}}} a | delta 2 nd so on | stop 2 | message_delta tool_use | message_stop → ended
    args-glued: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"}{"pa | delta 2 th":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    args-nul: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a\\u0000 | delta 2 "} | stop 2 | message_delta tool_use | message_stop → ended
    args-not-json: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {path:a | stop 2 | message_delta tool_use | message_stop → ended
    name-case: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use READ ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    name-prefix: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use functions.read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    name-tail: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read<|channel|>commentary ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    name-unknown: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read_that_is_not ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    same-ids: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    reused-ids: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read call_reused_0 | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    odd-ids: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read call:0|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta tool_use | message_stop → ended
    empty: 200 message_start | message_delta end_turn | message_stop → ended
    thinking-only: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | message_delta end_turn | message_stop → ended
    pause: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | message_delta pause_turn | message_stop → ended
    refusal: 200 message_start | start 0 text | ping | delta 0 Sheep 🐑 | stop 0 | message_delta refusal | message_stop → ended
    filter: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta refusal | message_stop → ended
    context-window: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path":"a"} | stop 2 | message_delta model_context_window_exceeded | message_stop → ended
    length: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Shee | stop 1 | message_delta max_tokens | message_stop → ended
    length-in-args: 200 message_start | start 0 thinking | ping | delta 0 Hm | delta 0 | stop 0 | start 1 text | delta 1 Sheep 🐑 | stop 1 | start 2 tool_use read ID | delta 2 | delta 2 {"path | stop 2 | message_delta max_tokens | message_stop → ended"
  `);
});

test('calls of one answer share an id, or have ids that were used before, or odd ones', async () => {
  const ids = async (fault: FaultName): Promise<readonly string[]> => {
    const { server } = await stage({
      loop: true,
      answers: [{ calls: [{ name: 'a' }, { name: 'b' }], fault: toFault(fault as 'odd-ids') }],
    });
    const all = [];
    for (let n = 0; n < 2; n++) {
      const response = await send(server, 'openai-chat', { body: requestFor('openai-chat') });
      const calls = at((await response.json()) as Json, 'choices.0.message.tool_calls') as readonly Json[];
      all.push(...calls.map((call) => textAt(call, 'id')));
    }
    return all;
  };
  const [first, second, third, fourth] = await ids('same-ids');
  expect([first === second, third === fourth, first === third]).toEqual([true, true, false]);
  expect(await ids('reused-ids')).toEqual(['call_reused_0', 'call_reused_1', 'call_reused_0', 'call_reused_1']);
  expect((await ids('odd-ids'))[1]).toBe(`call:1|${'x'.repeat(80)}`);
});

test('in the dialects of Chat Completions', async () => {
  const all = named('chat').map(async (name) => {
    const { body } = await got('openai-chat', faultOf(name), { stream: true, stream_options: { include_usage: true } });
    const chunks = dataIn(body).map((chunk) => {
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
    });
    return [name, ...chunks].join('\n  ');
  });
  expect((await Promise.all(all)).join('\n')).toMatchInlineSnapshot(`
    "chat-no-index
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-no-id
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-id-changes
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_changing_0_0","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"},"id":"call_changing_0_1"}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-id-repeated
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"},"id":"ID"}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-name-late
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}","name":"read"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-nulls
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":null,"arguments":"{\\"path\\":\\"a\\"}"},"id":null,"type":null}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-whole-call
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-finish-stop
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-no-finish
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-usage-null
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      [DONE]
    chat-usage-extra
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[{"index":0,"delta":{}}],"usage":7}
      [DONE]
    chat-usage-absent
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}]}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}]}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}]}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
      [DONE]
    chat-content-array
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"Sheep 🐑"}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-reasoning
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"reasoning":"Hm"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-reasoning-content
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-think-tags
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"<think>Hm</think>"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-no-role
      {"choices":[{"index":0,"delta":{"content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-extra-choices
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}},{"index":1,"delta":{"role":"assistant","content":"another choice"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}},{"index":1,"delta":{"role":"assistant","content":"another choice"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}},{"index":1,"delta":{"role":"assistant","content":"another choice"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}},{"index":1,"delta":{"role":"assistant","content":"another choice"}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"},{"index":1,"delta":{"role":"assistant","content":"another choice"}}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]
    chat-null-delta
      {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}
      {"choices":[{"index":0,"delta":null}],"usage":null}
      {"choices":[{"index":0,"delta":{"content":"Sheep 🐑"}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ID","function":{"name":"read","arguments":""}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a\\"}"}}]}}],"usage":null}
      {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}
      {"choices":[],"usage":7}
      [DONE]"
  `);
});

test.each(named('bytes').flatMap((name) => APIS.map((api) => [name, api] as const)))(
  '%s (%s): the same events in other bytes',
  async (name, api) => {
    const steady = (body: string): readonly Json[] =>
      dataIn(
        body
          .replace(/^\uFEFF/, '')
          .replaceAll(/[0-9a-f]{20,}\w*/g, 'ID')
          .replaceAll(/"(created|created_at|completed_at)": ?\d+/g, '"$1":0'),
      );
    const plain = await got(api, undefined);
    const odd = await got(api, faultOf(name));
    expect(steady(odd.body)).toEqual(steady(plain.body));
    expect(odd.ending).toBe('ended');
  },
);

test('bytes are really written as they should be', async () => {
  const wire = async (name: FaultName) => (await got('anthropic', faultOf(name))).body;
  expect(await wire('crlf')).toMatch(/^event: message_start\r\ndata: \{.*\}\r\n\r\nevent/);
  expect(await wire('cr')).toMatch(/^event: message_start\rdata: [^\n]*$/);
  expect(await wire('bom')).toMatch(/^\uFEFFevent/);
  expect(await wire('comments')).toMatch(/^: still here\n\nevent/);
  expect(await wire('data-lines')).toMatch(/^event: message_start\ndata: \{\ndata: {2}"type": "message_start",\n/);
  expect(await wire('no-blank-line')).toMatch(/data: \{"type":"message_stop"\}$/);
  expect((await got('anthropic', faultOf('gzip'))).headers.get('content-encoding')).toBe('gzip');
});

test('one byte per write arrives in many pieces', async () => {
  const { server } = await stage({ answers: [{ text: 'hi', fault: 'one-byte' }] });
  const response = await send(server, 'openai-chat', { body: requestFor('openai-chat', { stream: true }) });
  let pieces = 0;
  for await (const _ of response.body ?? []) pieces += 1;
  expect(pieces).toBeGreaterThan(100);
});

test('a status fault carries headers and bodies of choice', async () => {
  const { server } = await stage({
    otherwise: { text: 'ok' },
    faults: [
      { at: 1, fault: 'status', status: 502, body: 'html' },
      { at: 2, fault: 'status', status: 500, body: 'empty' },
      { at: 3, fault: 'status', status: 503, body: 'plain', message: 'upstream connect error' },
      { at: 4, fault: 'status', status: 429, headers: { 'retry-after-ms': '1500', 'x-should-retry': 'false' } },
      { at: 5, fault: 'status', status: 400, type: 'weird_error', message: 'tokens per minute', code: 'odd' },
    ],
  });
  const seen = [];
  for (let n = 0; n < 5; n++) {
    const response = await send(server, 'openai', { body: requestFor('openai') });
    seen.push([
      response.status,
      response.headers.get('content-type'),
      response.headers.get('retry-after-ms'),
      (await response.text()).slice(0, 90),
    ]);
  }
  expect(seen).toEqual([
    [502, 'text/html', null, expect.stringMatching(/^<html>/)],
    [500, null, null, ''],
    [503, 'text/plain', null, 'upstream connect error'],
    [
      429,
      'application/json',
      '1500',
      '{"error":{"message":"Rate limit reached for requests.","type":"requests","param":null,"cod',
    ],
    [
      400,
      'application/json',
      null,
      '{"error":{"message":"tokens per minute","type":"weird_error","param":null,"code":"odd"}}',
    ],
  ]);
});

test('faults by number, by every nth, for one agent and by chance', async () => {
  const hits = async (faults: Parameters<typeof stage>[0]['faults'], seed?: number): Promise<string> => {
    const { server } = await stage({
      otherwise: { text: 'ok' },
      agents: { bob: [] },
      faults: faults ?? [],
      ...(seed !== undefined && { seed }),
    });
    const statuses = [];
    for (let n = 1; n <= 12; n++)
      statuses.push(
        (await send(server, 'openai', { body: requestFor('openai', {}, n % 2 === 0 ? 'bob' : 'eve') })).status,
      );
    return statuses.map((status) => (status === 200 ? '.' : 'x')).join('');
  };
  const down = { fault: 'status', status: 500 } as const;
  expect(await hits([{ ...down, at: [1, 4] }])).toBe('x..x........');
  expect(await hits([{ ...down, every: 5 }])).toBe('....x....x..');
  expect(await hits([{ ...down, agent: 'bob', at: [1, 3] }])).toBe('.x...x......');
  const drawn = await hits([{ ...down, rate: 0.5 }], 3);
  expect(drawn).toMatch(/x.*\.|\..*x/);
  expect(await hits([{ ...down, rate: 0.5 }], 3)).toBe(drawn);
  expect(await hits([{ ...down, rate: 0.5 }], 4)).not.toBe(drawn);
});

test('where in the stream it happens can be chosen', async () => {
  const after = async (position: number | 'nothing') => {
    const { body } = await got('anthropic', {
      fault: 'error-event',
      after: position,
      type: 'api_error',
      message: 'oh',
    });
    return dataIn(body).map((event) => at(event, 'type'));
  };
  expect(await after('nothing')).toEqual(['error']);
  expect(await after(0)).toEqual(['message_start', 'content_block_start', 'ping', 'error']);
  expect((await after(3)).filter((type) => type === 'content_block_delta')).toHaveLength(3);
  expect((await after(99)).slice(-2)).toEqual(['content_block_stop', 'error']);
});

test('a whole answer breaks and stalls too', async () => {
  const endings = await Promise.all(
    (['cut', 'reset', 'silence'] as const).map(async (name) => (await got('openai', faultOf(name), {})).ending),
  );
  expect(endings).toEqual(['broken', 'broken', 'open']);
});

test('several faults meet in one answer', async () => {
  const { server } = await stage({ answers: [{ ...ANSWER, fault: ['args-empty', 'crlf', 'chat-no-index', 'gzip'] }] });
  const response = await send(server, 'openai-chat', { body: requestFor('openai-chat', { stream: true }) });
  const text = await response.text();
  expect(text).toContain('\r\n');
  expect(dataIn(text).flatMap((chunk) => at(chunk, 'choices.0.delta.tool_calls') ?? [])).toEqual([
    { id: expect.any(String), type: 'function', function: { name: 'read', arguments: '' } },
  ]);
  expect(server.requests[0]?.faults).toEqual(['args-empty', 'crlf', 'chat-no-index', 'gzip']);
});
