// The example of an embedded agent, run unchanged: only its key and address are those of a scripted model.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { rehearsal } from '../support/agent.ts';

test('examples/in-process/two-sides.ts runs one tool and gets the other’s result', async () => {
  const usage = { input: 1_000, output: 10, cacheRead: 0, cacheWrite: 0 };
  const server = await rehearsal({
    answers: [
      {
        calls: [
          { name: 'price_of', args: { article: 'apple' } },
          { name: 'multiply', args: { a: 7, b: 6 } },
          { name: 'price_of', args: { article: 'pear' } },
        ],
        usage,
      },
      ({ results }) =>
        results.length === 0 ? undefined : { text: results.map(({ output }) => output).join(', '), usage },
    ],
  });
  const env = { ANTHROPIC_API_KEY: 'test-key', ANTHROPIC_BASE_URL: server.baseUrlFor('anthropic') };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['examples/in-process/two-sides.ts'], { env });
  const lines = stdout.split('\n');
  expect(lines.filter((line) => !/^(message|toolcall)_/.test(line))).toEqual([
    'session_start',
    'usage',
    'tool_execution_start',
    'tool_execution_end',
    'awaiting_tool_execution',
    'session_end',
    '0.50, 7 * 6 = 42, no pear here',
    'completed, 10 tokens, $0.00315',
    '',
  ]);
  expect([stderr, server.rejections, server.requests.length]).toEqual(['', 0, 2]);
});
