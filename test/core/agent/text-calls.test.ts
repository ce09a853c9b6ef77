// Calls written as text: found in every dialect, and nothing else taken for one.

import { textFormCall } from '@drover/core/agent/text-calls';
import { expect, test } from 'vitest';

const TOOLS = ['read', 'shell', 'grep'];

const calls: readonly (readonly [dialect: string, text: string])[] = [
  ['invoke', '<invoke name="read">\n<parameter name="path">a.ts</parameter>\n</invoke>'],
  [
    'invoke',
    'Let me look.\n\n<function_calls>\n<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>\n</function_calls>',
  ],
  ['invoke', '<ns:function_calls>\n<ns:invoke name="grep">\n<ns:parameter name="pattern">x</ns:parameter>'],
  ['invoke', "<invoke name='read'>\n<parameter name='path'>cut off in the mid"],
  ['tool_call json', '<tool_call>\n{"name": "read", "arguments": {"path": "a.ts"}}\n</tool_call>'],
  ['tool_call json', 'Now:\n<tool_call>{"arguments": {}, "name": "shell"}'],
  ['tool_call name', '<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>'],
  ['function=', '<function=read>{"path": "a.ts"}</function>'],
  ['function=', '<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>'],
  ['[TOOL_CALLS]', '[TOOL_CALLS] [{"name": "read", "arguments": {"path": "a"}}]'],
  ['[TOOL_CALLS]', '[TOOL_CALLS]grep[ARGS]{"pattern": "x"}'],
  [
    'deepseek',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{"path":"a"}\n```<｜tool▁call▁end｜>',
  ],
  ['deepseek', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>shell<｜tool▁sep｜>{"command":"ls"}<｜tool▁call▁end｜>'],
  [
    'harmony',
    '<|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path":"a"}<|call|>',
  ],
  [
    'kimi',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>{"command":"ls"}<|tool_call_end|>',
  ],
  ['tool_code', '```tool_code\nprint(default_api.read(path="a.ts"))\n```'],
  ['tool_code', 'I will look:\n```tool_code\nresult = grep(pattern="x")\n```'],
];

test.each(calls)('%s: %j', (dialect, text) => {
  expect(textFormCall(text, TOOLS)?.dialect).toBe(dialect);
});

test.each(calls)('%s with a name that is no tool is an answer: %j', (_, text) => {
  expect(textFormCall(text, ['unrelated'])).toBeUndefined();
});

test.each([
  'All done. The tests pass.',
  'A model calls a tool by writing <invoke name="read"> and so on.',
  'Use `<tool_call>{"name": "read"}` for that.',
  '```xml\n<invoke name="read">\n<parameter name="path">a</parameter>\n</invoke>\n```',
  'Example:\n\n~~~\n<function=read>{"path": "a"}</function>\n~~~\nThat is all.',
  'a < b && read[0] > 1',
  '<read>not markup for a call</read>',
  'The [TOOL_CALLS] token is special.',
  '```ts\nconst read = 1;\n```',
  '```\n<tool_call>\n{"name": "read"}', // a fence that was never closed
  '',
])('an ordinary answer is none: %j', (text) => {
  expect(textFormCall(text, TOOLS)).toBeUndefined();
});

test('a long text is searched in time that grows with its length', () => {
  const text = '<tool_call>\n{"a": "'.repeat(20_000) + '<invoke name="'.repeat(20_000);
  const begun = performance.now();
  textFormCall(text, TOOLS);
  expect(performance.now() - begun).toBeLessThan(5_000);
});
