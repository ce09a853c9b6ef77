// House rules for functions: at most 60 lines and at most 3 parameters. The exceptions are listed by name,
// and a listed function that keeps the rule must leave the list, so the lists only shrink.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { LONG_FUNCTIONS, WIDE_FUNCTIONS } from './exceptions.ts';

type Finding = {
  readonly code: string;
  readonly filename: string;
  readonly labels: readonly { readonly span: { readonly offset: number } }[];
};

let findings: readonly Finding[] = [];

beforeAll(async () => {
  const args = ['-c', 'test/tidy/oxlint.json', '-f', 'json', 'bin', 'packages', 'scripts'];
  const options = { maxBuffer: 16 * 1024 * 1024 };
  // oxlint exits with 1 when it finds anything; the findings are on stdout all the same.
  const { stdout } = await promisify(execFile)('node_modules/.bin/oxlint', args, options).catch(
    (error: unknown) => error as { readonly stdout: string },
  );
  findings = (JSON.parse(stdout) as { readonly diagnostics: readonly Finding[] }).diagnostics;
});

/** The functions that break a rule, as `file: name`, sorted. */
function offenders(rule: string): readonly string[] {
  return findings
    .filter(({ code }) => code === `eslint(${rule})`)
    .map(({ filename, labels }) => `${filename}: ${nameAt(filename, labels[0]?.span.offset ?? 0)}`)
    .sort();
}

/** The identifier at a byte offset, or the last one before it: oxlint points at the name or at the parameters. */
function nameAt(file: string, offset: number): string {
  const bytes = readFileSync(file);
  const here = /^(?:export )?(?:async )?(?:function )?\*?\s*(#?\w+)/.exec(bytes.subarray(offset).toString())?.[1];
  const before = /(#?\w+)(?:<[^<>]*>)?(?:[\s=:(]|\basync\b)*$/.exec(bytes.subarray(0, offset).toString())?.[1];
  return here ?? before ?? 'unknown';
}

test('a function has at most 60 lines', () => {
  expect(offenders('max-lines-per-function')).toEqual(LONG_FUNCTIONS);
});

test('a function has at most 3 parameters', () => {
  expect(offenders('max-params')).toEqual(WIDE_FUNCTIONS);
});
