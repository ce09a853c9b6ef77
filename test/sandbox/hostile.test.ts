// Hostile commands, run by the shell tool's path, reach nothing outside and leave nothing behind.
// The slow lane runs each alone, and also without a sandbox, where most succeed.

import { expect, test } from 'vitest';
import { inSandbox, runInside } from '../support/sandbox/box.ts';
import { ATTACKS } from '../support/sandbox/hostile/all.ts';
import { HostileWorld } from '../support/sandbox/hostile/world.ts';
import { sideBySide } from '../support/sandbox/parallel.ts';

const COMMAND_MS_MAX = 30_000;

test('the corpus has at least 120 attacks, each under a name of its own', () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
  expect(ATTACKS.length).toBeGreaterThanOrEqual(120);
});

inSandbox('hostile commands inside the sandbox', (system) => {
  test('hostile commands reach nothing and leave nothing behind', async () => {
    const world = await HostileWorld.open(system);
    const ran = await sideBySide(ATTACKS, async (attack) => {
      const { output, ...end } = await runInside(world, world.command(attack), {
        env: world.env,
        timeoutMs: COMMAND_MS_MAX,
      });
      return { attack, output, end };
    });
    const told = ran.flatMap(({ attack, output }) => world.shown(output).map((each) => `${attack.name} -> ${each}`));
    expect({ told, harm: world.harm('') }).toEqual({ told: [], harm: [] });
    expect(ran.filter(({ end }) => end.endedBy !== 'itself').map(({ attack }) => attack.name)).toEqual([]);
  });
});
