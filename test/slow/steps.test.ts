// An agent that never ends by itself, with the default step limit.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { STEPS_MAX_DEFAULT } from '@drover/core/agent/limits';
import { expect, test } from 'vitest';
import { drover, temporaryFolder } from '../cli/fake-io.ts';

test('an agent is stopped at the default number of steps', async () => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'script.yaml'), 'answers: [{calls: [{name: list}]}]\nloop: true\n');
  const { code, stdout } = await drover(['exec', 'go', '--model', 'rehearsal/script.yaml', '--json'], { cwd });
  const lines = stdout.trimEnd().split('\n');
  expect(lines.filter((line) => line.includes('"type":"message_end"') && line.includes('"role":"tool"'))).toHaveLength(
    STEPS_MAX_DEFAULT,
  );
  expect([code, lines.at(-2)]).toEqual([3, expect.stringContaining('"limit":"steps"')]);
}, 120_000);
