// The checks of .ci/run: the last line counts every failure, and the exit code reports it.
// A fake npx plays the steps, since the real ones would run this test again.

import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { startProcess } from '@drover/core/tools/process/start';
import { expect, test } from 'vitest';
import { temporaryFolder } from './support/workspace.ts';

const RUN = resolve('.ci/run');

// Stands in for `npx -y pnpm@… <step>`: fails on request, and writes the test results.
const NPX = `#!/usr/bin/env bash
step=$3
if [ "$step" = exec ]; then exec "\${@:4}"; fi
case $step in test) results=$RESULTS;; test:whole) results=$WHOLE_RESULTS;; *) results=;; esac
for word; do
  case $word in --outputFile.json=*) [ -z "$results" ] || printf '%s' "$results" >"\${word#*=}";; esac
done
case " $FAILING " in *" $step "*) exit 1;; esac
`;

async function ran(failing: string, numPassedTests?: number, numFailedTests?: number) {
  const folder = await temporaryFolder();
  // Chromium and bubblewrap are reported as installed, so that .ci/run installs nothing.
  for (const [name, program] of [['npx', NPX], ...['git', 'chromium'].map((each) => [each, '#!/bin/sh\n'])] as const)
    await writeFile(join(folder, name ?? ''), program ?? '', { mode: 0o755 });
  const env = {
    PATH: `${folder}:${join(process.execPath, '..')}:${process.env['PATH']}`,
    HOME: folder,
    FAILING: failing,
    RESULTS: numPassedTests === undefined ? '' : JSON.stringify({ numPassedTests, numFailedTests }),
    WHOLE_RESULTS: failing.includes('whole') ? '' : JSON.stringify({ numPassedTests: 10, numFailedTests: 0 }),
  };
  const { stdout, stderr, ended } = await startProcess({ file: RUN, args: [], cwd: '/', env, detached: false });
  const [said, complaints, { exitCode }] = await Promise.all([text(stdout), text(stderr), ended]);
  return [said.trimEnd().split('\n').at(-1), exitCode, complaints];
}

test.each<[string, string, number | undefined, number | undefined, string, number]>([
  ['all is well', '', 40, 0, '54 passed, 0 failed', 0],
  ['a step fails', 'lint', 40, 0, '53 passed, 1 failed', 1],
  ['two steps fail', 'types format:check', 40, 0, '52 passed, 2 failed', 1],
  ['tests fail', 'test', 38, 2, '52 passed, 2 failed', 1],
  ['a step and tests fail', 'types test', 38, 2, '51 passed, 3 failed', 1],
  ['a test file cannot be loaded', 'test', 40, 0, '54 passed, 1 failed', 1],
  ['no results exist and the tests fail', 'test', undefined, undefined, '14 passed, 1 failed', 1],
  ['no results exist and no step fails', '', undefined, undefined, '14 passed, 1 failed', 1],
  ['the whole product cannot be tested', 'test:whole', 40, 0, '44 passed, 1 failed', 1],
  ['nothing can be installed', 'install', 40, 0, '0 passed, 1 failed', 1],
])('where %s it is counted', async (_, failing, passes, fails, lastLine, code) => {
  expect(await ran(failing, passes, fails)).toEqual([lastLine, code, '']);
});
