// Every hostile command alone: none succeeds inside the sandbox. Outside it those that can do succeed, which shows that
// the test would notice; they write to temporary folders only.

import { expect, test } from 'vitest';
import { inSandbox, runInside, runOutside } from '../../support/sandbox/box.ts';
import { ATTACKS } from '../../support/sandbox/hostile/all.ts';
import { HostileWorld } from '../../support/sandbox/hostile/world.ts';

const COMMAND_MS_MAX = 60_000;

inSandbox('each hostile command alone', (system) => {
  test.each(ATTACKS)('$name: contained', async (attack) => {
    const world = await HostileWorld.open(system);
    const ran = await runInside(world, world.command(attack), { env: world.env, timeoutMs: COMMAND_MS_MAX });
    expect(world.harm(ran.output)).toEqual([]);
  });

  test.each(ATTACKS.filter(({ bites }) => bites))('$name: succeeds without the sandbox', async (attack) => {
    const world = await HostileWorld.open(system);
    const ran = await runOutside(world.root, world.command(attack), { env: world.env, timeoutMs: COMMAND_MS_MAX });
    expect(world.harm(ran.output)).not.toEqual([]);
  });
});
