// The catalog: which facts a model name stands for.

import { modelFactsOf } from '@drover/core/model/catalog';
import { expect, test } from 'vitest';

const anthropic = (outputTokensMax: number, input: number, output: number) => ({
  contextTokens: 200_000,
  outputTokensMax,
  price: { input, output, cacheRead: expect.closeTo(input / 10), cacheWrite: expect.closeTo(input * 1.25) },
});
const openai = (contextTokens: number, input: number, output: number, cacheRead = input / 10) => ({
  contextTokens,
  outputTokensMax: 16_384,
  price: { input, output, cacheRead: expect.closeTo(cacheRead), cacheWrite: input },
});

test.each([
  ['claude-opus-4-1-20250805', anthropic(32_000, 15, 75)],
  ['claude-opus-4-5', anthropic(32_000, 5, 25)],
  ['claude-sonnet-4-5', anthropic(32_000, 3, 15)],
  ['claude-haiku-4-5', anthropic(32_000, 1, 5)],
  ['claude-3-5-haiku-latest', anthropic(8_192, 0.8, 4)],
  ['claude-3-opus', anthropic(4_096, 3, 15)],
  ['gpt-5', openai(400_000, 1.25, 10)],
  ['gpt-5-nano-x', openai(400_000, 0.05, 0.4)],
  ['gpt-4.1-mini', openai(1_000_000, 0.4, 1.6, 0.1)],
  ['gpt-4o', openai(128_000, 2.5, 10, 1.25)],
  ['llama', { contextTokens: 200_000, outputTokensMax: 16_384 }],
])('%s has the facts of its longest known prefix', (name, facts) => {
  expect(modelFactsOf(name)).toEqual(facts);
});
