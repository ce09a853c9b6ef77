// Faults during a stream, as a client sees them.

import { expect, test } from 'vitest';
import type { FaultName } from '@drover/rehearsal/faults/fault';
import { faultOf, got, tale, tales } from '../tales.ts';

test('faults in the stream', async () => {
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

test('faults in the stream of Responses and Chat Completions', async () => {
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

test('a whole answer breaks and stalls too', async () => {
  const endings = await Promise.all(
    (['cut', 'reset', 'silence'] as const).map(async (name) => (await got('openai', faultOf(name), {})).ending),
  );
  expect(endings).toEqual(['broken', 'broken', 'open']);
});
