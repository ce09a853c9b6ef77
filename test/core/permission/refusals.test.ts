// What looks harmless and is not: never run unasked, whatever is put behind what is.

import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { everyday } from './everyday.ts';
import { refusals } from './refusals.ts';
import { sampleRepository } from './sample-repository.ts';
import { judgeCommand } from './tools.ts';

let sample: Awaited<ReturnType<typeof sampleRepository>>;
beforeAll(async () => {
  sample = await sampleRepository();
});
afterAll(() => sample.remove());

async function allowedOf(commands: readonly string[]): Promise<readonly string[]> {
  const allowed: string[] = [];
  for (const command of commands) {
    const { effect } = await judgeCommand(command, { root: sample.root });
    if (effect === 'allow') allowed.push(command);
  }
  return allowed;
}

test.each(Object.entries(refusals))('asked about: %s', async (_, commands) => {
  expect(await allowedOf(commands)).toEqual([]);
});

test('there are enough of them to mean something', () => {
  expect(Object.values(refusals).flat().length).toBeGreaterThan(300);
});

const SUFFIXES = [
  '; touch made',
  ' && touch made',
  ' || touch made',
  '\ntouch made',
  ' | sh',
  ' | tee made',
  ' | xargs rm',
  ' & touch made',
  ' &',
  ' > made',
  ' >> made',
  ' 2> made',
  ' &> made',
  ' $(touch made)',
  ' `touch made`',
  ' <(touch made)',
  ' > >(sh)',
  ' "$(touch made)"',
  ' ${x:=$(touch made)}',
  ' $((a[$(touch made)]))',
  '; eval "touch made"',
  '; . ./made',
  '; }',
  '; trap "touch made" EXIT',
  '; ls() { touch made; }',
  '; PATH=.',
];

proves(
  'permission.asked',
  'a harmless command with something behind it is asked about',
  async () => {
    const harmless = await allowedOf(everyday);
    expect(harmless.length).toBeGreaterThan(200);
    // Behind a here-document a suffix is only text, or the end of it is missing.
    const endable = harmless.filter((command) => !command.includes('<<EOF'));
    expect(await allowedOf(endable.flatMap((command) => SUFFIXES.map((suffix) => command + suffix)))).toEqual([]);
  },
  60_000,
);

test('a link in the workspace does not lead out of it', async () => {
  await symlink('/etc', join(sample.root, 'link'));
  await symlink('/etc/passwd', join(sample.root, 'link.txt'));
  const commands = [
    'cat link/passwd',
    'cat link.txt',
    'ls link/',
    'cd link && cat passwd',
    'head link/../passwd',
    'wc < link.txt',
  ];
  expect(await allowedOf(commands)).toEqual([]);
});
