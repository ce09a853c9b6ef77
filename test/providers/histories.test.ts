// Whatever a conversation went through, what is sent is what providers accept.

import type { Api } from '@drover/core/model/catalog';
import type { Provider } from '@drover/core/model/protocol';
import { expect } from 'vitest';
import { providerOn, rehearsal } from '../support/agent.ts';
import { anyAnswer, Life, randomFrom } from '../support/histories.ts';
import { proves } from '../support/proves.ts';

// The slow lane sets ten thousand.
const LIVES = Number(process.env['DROVER_TEST_HISTORIES'] ?? 1_000);

proves(
  'request.always-valid',
  `of ${LIVES} random histories none is refused by a server as strict as the real ones`,
  async () => {
    const server = await rehearsal(anyAnswer(randomFrom(7)));
    const providers = {
      anthropic: await providerOn(server, 'anthropic'),
      openai: await providerOn(server, 'openai'),
      'openai-chat': await providerOn(server, 'openai-chat'),
    } satisfies Record<Api, Provider>;
    const refused: string[] = [];
    for (let seed = 1; seed <= LIVES; seed++) {
      const life = new Life(randomFrom(seed), providers);
      await life.live(4 + (seed % 12)).catch((error: Error) => refused.push(`seed ${seed}: ${error.message}`));
    }
    expect(refused).toEqual([]);
    expect(server.rejections).toBe(0);
    expect(server.requests.length).toBeGreaterThan(LIVES);
  },
  1_200_000,
);
