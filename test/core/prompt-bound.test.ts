// The most tokens a prompt can have, and a budget that holds even where every byte is a token.

import type { Message, Usage } from '@drover/protocol/messages';
import { promptTokensMax } from '@drover/core/conversation/prompt-bound';
import { defineTool } from '@drover/core/tools/tool';
import type { AnswerSource } from '@drover/rehearsal/script';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn } from '../support/agent.ts';
import { proves } from '../support/proves.ts';

const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const answer = (text: string, usage: Usage): Message => ({
  role: 'assistant',
  content: [{ type: 'text', text }],
  stop: 'stop',
  usage,
});
const usage = (input: number, output: number): Usage => ({ input, output, cacheRead: 0, cacheWrite: 0 });

describe('a prompt has at most', () => {
  test('a token for each byte, if no count was reported', () => {
    expect(promptTokensMax([said('日本語')], 500)).toBe(1_000 + 500 + 16 + 9);
  });

  test('the reported count and a token for each byte since', () => {
    const before = [said('x'.repeat(100_000)), answer('fine', usage(20_000, 300))];
    expect(promptTokensMax([...before, said('go on')], 5_000)).toBe(20_300 + (16 + 16 + 4) + (16 + 5));
  });

  test('the last reported count, including cache', () => {
    const counted = { input: 5, output: 10, cacheRead: 900, cacheWrite: 85 };
    const messages = [said('a'), answer('b', usage(50_000, 9)), said('c'), answer('d', counted), said('e')];
    expect(promptTokensMax(messages, 500_000)).toBe(1_000 + (16 + 16 + 1) + (16 + 1));
  });

  test('its bytes, if it was shortened since the last count', () => {
    const messages = [said('a summary'), answer('b', usage(150_000, 500)), said('c')];
    expect(promptTokensMax(messages, 100)).toBe(1_000 + 100 + (16 + 9) + (16 + 16 + 1) + (16 + 1));
  });

  test('nothing less for an answer with only estimated usage', () => {
    const messages = [said('a'), answer('b', { ...usage(1, 1), estimated: true })];
    expect(promptTokensMax(messages, 0)).toBe(1_000 + 17 + 33);
  });
});

proves('budget.holds', 'a budget holds even if the provider counts a token per byte', async () => {
  const dense = defineTool({
    name: 'dense',
    description: 'Text that is nothing but tokens.',
    input: z.object({}),
    access: 'none',
    subject: () => '',
    run: async () => '日本語0123456789'.repeat(150),
  });
  const counting: AnswerSource = ({ body }) => ({
    calls: [{ name: 'dense', args: {} }],
    usage: { input: Buffer.byteLength(JSON.stringify([body['system'], body['tools'], body['messages']])), output: 60 },
  });
  const cap = { tokens: 100_000 };
  const { run, server } = await agentOn({ answers: [counting], loop: true }, { tools: [dense], cap });
  const { result } = await run('go');
  expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { limit: 'budget' } });
  const { input, output, cacheRead, cacheWrite } = result.usage;
  expect(input + output + cacheRead + cacheWrite).toBeLessThanOrEqual(cap.tokens);
  expect(server.requests.length).toBeGreaterThan(3);
});
