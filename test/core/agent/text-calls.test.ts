// Calls written as text: every dialect is found, and no ordinary answer is taken for one.

import { readFileSync } from 'node:fs';
import { textFormCall } from '@drover/core/agent/text-form/text-calls';
import { sessionTools } from '@drover/core/tools/builtin';
import { describe, expect, test } from 'vitest';
import { agentOn } from '../../support/agent.ts';

const TOOLS = sessionTools.map(({ name }) => name);
const ordinary = readFileSync(new URL('data/ordinary-answers.txt', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n%%%%\n');

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
  expect(textFormCall(text, TOOLS, 'stop')?.dialect).toBe(dialect);
});

test.each(calls)('%s with a name that is not a tool is an answer: %j', (_, text) => {
  expect(textFormCall(text, ['unrelated'], 'tool_calls')).toBeUndefined();
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
  '```\n<tool_call>\n{"name": "read"}', // an unclosed fence
  '<｜tool▁call▁begin｜>function<｜tool▁sep｜>read', // without arguments
  '',
])('an ordinary answer is not a call: %j', (text) => {
  expect(textFormCall(text, TOOLS, 'stop')).toBeUndefined();
});

test('a long text is searched in linear time', () => {
  const text = [
    '<tool_call>\n{"a": "'.repeat(5_000),
    '<invoke name="'.repeat(5_000),
    '<invoke name="read">\n<parameter name="path">\n\n'.repeat(5_000),
    '<tool_call>{"name": "read", "x": "\n\n'.repeat(5_000),
    '`'.repeat(5_000) + '` `` ``` <!-- <pre> <code>'.repeat(5_000),
  ].join('\n');
  const begun = process.threadCpuUsage();
  expect(textFormCall(text, TOOLS, 'stop')).toBeUndefined();
  expect(process.threadCpuUsage(begun).user).toBeLessThan(5_000_000); // CPU time of this thread, in microseconds
});

describe('ordinary answers about tool syntax', () => {
  test('are two hundred different ones', () => {
    expect(new Set(ordinary).size).toBe(200);
  });

  test('are never taken for calls', () => {
    expect(ordinary.filter((text) => textFormCall(text, TOOLS, 'stop') !== undefined)).toEqual([]);
  });

  test('are kept as they are, in text and in thinking', async () => {
    const some = ordinary.filter((_, n) => n % 10 === 0);
    const answers = some.flatMap((text) => [{ text }, { thinking: text, text: 'Done.' }]);
    const { run } = await agentOn({ answers }, { tools: sessionTools });
    const outcomes = new Map<string, number>();
    for (let turn = 0; turn < answers.length; turn++) {
      const { events, result } = await run('go on');
      const discarded = events.filter(({ type }) => type === 'attempt_discarded').length;
      const key = `${result.outcome.status}, ${discarded} discarded`;
      outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
    }
    expect([...outcomes]).toEqual([['done, 0 discarded', 40]]);
  });
});

describe('a call', () => {
  const call = '<invoke name="read">\n<parameter name="path">a</parameter>\n</invoke>';
  const dialectOf = (text: string, stop: 'stop' | 'length' | 'tool_calls' = 'stop') =>
    textFormCall(text, TOOLS, stop)?.dialect;

  test.each([
    ['behind a code block', `It was:\n\n\`\`\`\n${call}\n\`\`\`\n\nNow for real.\n\n${call}`],
    ['behind a list', `1. Look.\n2. Change.\n\n${call}`],
    ['behind a stray backtick', `Don\`t worry.\n\n${call}\n`],
    ['behind an example that goes on', `${call}\n\nwas the example.\n\n${call}`],
    [
      'of several in one line',
      `<function_calls>${call.replaceAll('\n', '')}${call.replaceAll('\n', '')}</function_calls>`,
    ],
    ['with a tool that is unknown behind it', `${call}\n<invoke name="other">\n</invoke>`],
    [
      'with code in its value',
      '<invoke name="write">\n<parameter name="content">\n```\n\n    x\n</parameter>\n</invoke>',
    ],
  ])('that ends the answer is found %s', (_, text) => {
    expect(dialectOf(text)).toBe('invoke');
  });

  test('in the middle of an answer is found only if the stop reason says calls', () => {
    expect(dialectOf(`${call}\n\nThat is all.`)).toBeUndefined();
    expect(dialectOf(`${call}\n\nThat is all.`, 'tool_calls')).toBe('invoke');
  });

  test('in code is an answer, whatever the stop reason says', () => {
    const inCode = [
      `\`\`\`\n${call}\n\`\`\``,
      call.replaceAll(/^/gm, '    '),
      call.replaceAll(/^/gm, '> '),
      `\`${call}\``,
    ];
    expect(inCode.map((text) => dialectOf(text, 'tool_calls'))).toEqual(inCode.map(() => undefined));
  });

  test('that the token limit cuts off is found with blank lines in its value', () => {
    const cut = '<invoke name="write">\n<parameter name="content">one\n\ntwo';
    expect([dialectOf(cut), dialectOf(cut, 'length')]).toEqual([undefined, 'invoke']);
  });

  // The Responses API has no stop reason for calls.
  test.each(['anthropic', 'openai-chat'] as const)(
    'in the middle is asked for again if %s ends with calls and sends none',
    async (api) => {
      const text = `${call}\n\nThat is all.`;
      const { run } = await agentOn({ answers: [{ text, stop: 'calls' }, { text: 'ok' }] }, { api });
      const { events } = await run('go');
      expect(events.filter(({ type }) => type === 'attempt_discarded')).toHaveLength(1);
    },
  );
});
