// Faults in the content of an answer, mostly in its calls, as a client sees them.

import { expect, test } from 'vitest';
import { toFault, type FaultName } from '@drover/rehearsal/faults/fault';
import type { Json } from '@drover/rehearsal/json';
import { at, requestFor, send, stage, textAt } from '../clients.ts';
import { tales } from '../tales.ts';

test('faults in the content', async () => {
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

test('calls of one answer share an id, reuse old ids, or have odd ones', async () => {
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
