// Sessions of random size on the strict server: large and small results, and windows that hold them only if shortened.

import { defineTool } from '@drover/core/tools/tool';
import { z } from 'zod';
import { agentOn, APIS, type Rehearsed } from '../agent.ts';
import { randomFrom, type Random } from './histories.ts';

const flood = defineTool({
  name: 'flood',
  description: 'Much text.',
  input: z.object({ chars: z.number() }),
  access: 'none',
  subject: ({ chars }) => `${chars}`,
  run: async ({ chars }) => 'x'.repeat(chars),
});

export const SUMMARY = { when: { system: 'condense the history' }, text: 'Numbers were counted.' };

/** A session whose window, results, messages and summary are of random size, on a server with that window. */
export async function liveThrough(
  seed: number,
): Promise<{ readonly failures: readonly string[]; readonly lived: Rehearsed }> {
  const random = randomFrom(seed);
  const window = 8_000 + random.below(40_000);
  // If the server's window is smaller than the session assumes, only the provider's refusal shows it.
  const contextTokens = random.chance(0.3) ? Math.floor(window * 0.7) : window;
  const summary = { ...SUMMARY, text: 'y'.repeat(20 + random.below(2_000)) };
  const turns = Array.from({ length: 1 + random.below(3) }, () => anyTurn(random, window));
  const lived = await agentOn(
    { answers: [summary, ...turns.flatMap(({ answers }) => answers)], contextTokens },
    {
      api: random.pick(APIS),
      tools: [flood],
      contextTokens: window,
      charsPerToken: random.pick([2, 4, 8]),
      outputTokensMax: random.pick([1_000, 8_000, 64_000]),
    },
  );
  const failures: string[] = [];
  for (const { says } of turns) {
    const { result } = await lived.run(says);
    if (result.outcome.status !== 'done') failures.push(`seed ${seed}: ${JSON.stringify(result.outcome)}`);
  }
  return { failures, lived };
}

function anyTurn(random: Random, window: number) {
  const steps = Array.from({ length: 1 + random.below(8) }, () => ({
    calls: Array.from({ length: 1 + random.below(random.pick([1, 3, 12])) }, () => ({
      name: 'flood',
      args: { chars: random.pick([10, 100, 1_000, 10_000, 30_000]) + random.below(100) },
    })),
  }));
  // At most a third of the smallest window, by the server's four characters to a token.
  const says = 'z'.repeat(1 + random.below(random.pick([20, Math.floor(window * 0.9)])));
  return { says, answers: [...steps, { text: 'Done.' }] };
}
