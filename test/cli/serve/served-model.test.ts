// A custom model server from the environment: each wire format is requested with the key, and its answer is streamed
// whole.

import type { Recorded } from '@drover/protocol/events';
import { startRehearsal } from '@drover/rehearsal/server';
import { expect, onTestFinished, test } from 'vitest';
import { drover, temporaryFolder } from '../fake-io.ts';

const USAGE = { input: 1_200, output: 34, cacheRead: 100, cacheWrite: 0 };

test.each([
  ['anthropic', '/v1/messages', [{ type: 'thinking', text: 'Hm. Let me see.' }]],
  ['openai', '/v1/responses', [{ type: 'thinking', text: 'Hm. Let me see.' }]],
  // Chat Completions defines no thinking. Drover reads what servers add, and this one adds nothing.
  ['openai-chat', '/v1/chat/completions', []],
] as const)('%s: message_end holds exactly what was streamed', async (api, path, thinking) => {
  const server = await startRehearsal({
    answers: [
      {
        thinking: 'Hm. Let me see.',
        text: 'I look, “quietly”.\n',
        calls: [
          { name: 'list', args: { path: '.' } },
          { name: 'glob', args: { pattern: '*.no "such"\\' } },
        ],
        usage: USAGE,
      },
      { text: 'Nothing.', stop: 'length' },
    ],
    chunkChars: 3,
  });
  onTestFinished(() => server.close());
  const { code, stdout, stderr } = await drover(['exec', 'hi', '--model', `${api}/any`, '--json'], {
    cwd: await temporaryFolder(),
    env: {
      ANTHROPIC_BASE_URL: server.baseUrlFor('anthropic'),
      OPENAI_BASE_URL: server.baseUrlFor('openai'),
      ANTHROPIC_API_KEY: 'x',
      OPENAI_API_KEY: 'x',
    },
  });
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Recorded);
  const messages = events.flatMap((event) =>
    event.type === 'message_end' && event.message.role === 'assistant' ? [event.message] : [],
  );

  expect([code, stderr, server.requests.map((request) => request.path)]).toEqual([3, '', [path, path]]);
  expect(messages.map(({ content, stop }) => ({ content, stop }))).toEqual([
    {
      content: [
        ...thinking,
        { type: 'text', text: 'I look, “quietly”.\n' },
        { type: 'tool_call', id: expect.any(String), name: 'list', args: { path: '.' } },
        { type: 'tool_call', id: expect.any(String), name: 'glob', args: { pattern: '*.no "such"\\' } },
      ],
      stop: 'tool_calls',
    },
    { content: [{ type: 'text', text: 'Nothing.' }], stop: 'length' },
  ]);
  expect(messages[0]?.usage).toEqual(USAGE);
});
