// A gigabyte of output: memory stays flat, the event loop continues, both ends arrive.

import { readFile, stat } from 'node:fs/promises';
import { shell } from '@drover/core/tools/shell';
import { expect } from 'vitest';
import { proves } from '../support/proves.ts';
import { memoryGrowthDuring, workspace } from '../support/workspace.ts';

const GIGABYTE = [
  ['one endless line', "head -c 1000000000 /dev/zero | tr '\\0' 'a'", /^aaa[^]*\naaa/],
  ['short lines', 'yes 0123456789 | head -c 1000000000', /^0123456789\n[^]*\n0123456789\n/],
  ['binary data', 'head -c 1000000000 /dev/zero', /^binary data, 1\.0 GB; the first 64\.0 MB are in /],
] as const;

for (const [kind, command, expected] of GIGABYTE) {
  proves(
    'output.bounded',
    `a gigabyte of ${kind} grows memory by less than 64 MB and blocks nothing`,
    async () => {
      const { call } = await workspace();
      let output = '';
      let longestPauseMs = 0;
      let last = performance.now();
      const beat = setInterval(() => {
        longestPauseMs = Math.max(longestPauseMs, performance.now() - last);
        last = performance.now();
      }, 5);
      const growth = await memoryGrowthDuring(async () => {
        ({ output } = await call(shell, { command }));
      });
      clearInterval(beat);

      expect(output.length).toBeLessThanOrEqual(30_000);
      expect(output).toMatch(expected);
      expect(growth.all).toBeLessThan(64_000_000);
      expect(growth.buffers).toBeLessThan(16_000_000);
      expect(longestPauseMs).toBeLessThan(500);
      const file = / in (\S+\.txt)/.exec(output)?.[1] ?? '';
      expect((await stat(file)).size).toBe(64_000_000);
      expect((await readFile(file)).length).toBe(64_000_000);
    },
    120_000,
  );
}
