// Settings that the command line passes to the engine: token estimate, retries, environment.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { drover, type Given, temporaryFolder } from '../fake-io.ts';

async function eventsOf(script: string, given: Given = {}, args: readonly string[] = []): Promise<readonly Recorded[]> {
  const cwd = given.cwd ?? (await temporaryFolder());
  await writeFile(join(cwd, 'script.yaml'), script);
  const argv = ['exec', 'go', '--model', 'rehearsal/script.yaml', '--json', '--yes', ...args];
  const { stdout } = await drover(argv, { ...given, cwd });
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Recorded);
}

const TWO_STEPS = 'answers:\n  - {calls: [{name: list}], usage: {input: 64000}}\n  - {text: Done.}\n';

/** Reported tokens ÷ estimated tokens; rises with the assumed characters per token. */
async function ratio(given: Given): Promise<number> {
  const events = await eventsOf(TWO_STEPS, given);
  return events.flatMap((event) => (event.type === 'usage' ? [event.estimateRatio ?? 0] : [])).at(-1) ?? 0;
}

test('characters per token come from the environment first, then the config', async () => {
  const cwd = await temporaryFolder();
  const byDefault = await ratio({ cwd });
  await mkdir(join(cwd, '.config/drover'), { recursive: true });
  await writeFile(join(cwd, '.config/drover/config.yaml'), 'charsPerToken: 8\n');
  expect((await ratio({ cwd })) / byDefault).toBeCloseTo(2, 1);
  expect((await ratio({ cwd, env: { DROVER_CHARS_PER_TOKEN: '16' } })) / byDefault).toBeCloseTo(4, 1);
});

const WRITTEN = `answers:
  - {text: "<invoke name=\\"list\\">\\n<parameter name=\\"path\\">.</parameter>\\n</invoke>"}
loop: true
`;

test.each([
  [{}, 3, 'error'],
  [{ DROVER_TEXT_TOOL_CALL_RETRY_LIMIT: '1' }, 2, 'error'],
  [{ DROVER_TEXT_TOOL_CALL_RETRY_LIMIT: '0' }, 0, 'done'],
])('a call written as text is retracted as often as %o says', async (env, discarded, outcome) => {
  const events = await eventsOf(WRITTEN, { env });
  expect(events.filter(({ type }) => type === 'attempt_discarded')).toHaveLength(discarded);
  expect(events.at(-1)).toMatchObject({ type: 'session_end', outcome });
});

test('a command sees only the listed variables of the environment', async () => {
  const script = 'answers:\n  - {calls: [{name: shell, args: {command: env}}]}\n  - {text: Done.}\n';
  const env = { SOME_VARIABLE: 'seen', OPENAI_API_KEY: 'sk-not-for-commands', LANG: 'C' };
  const end = (await eventsOf(script, { env })).find((event) => event.type === 'tool_execution_end');
  expect(end?.output).toContain('LANG=C');
  expect(end?.output).not.toMatch(/SOME_VARIABLE|OPENAI_API_KEY/);
});

test.each([
  ['touch x', [], false],
  ['ls', [], false],
  ['touch x', ['--allow', 'shell(touch *)'], true],
  ['touch x', ['--allow', 'shell(mkdir *)'], false],
  ['ls', ['--allow', 'shell(ls)'], true],
  ['ls', ['--allow', 'shell(ls)', '--ask', 'shell(ls*)'], false],
  ['ls', ['--allow', 'shell(ls)', '--deny', 'shell(ls*)'], false],
  ['touch x', ['--yes'], true],
  ['touch x', ['--yes', '--ask', 'shell(touch*)'], true],
  ['touch x', ['--yes', '--deny', 'shell(touch*)'], false],
  ['touch x', ['--gate', 'touch x'], false],
])('with no terminal to ask on, %s with %j is allowed: %s', async (command, args, isAllowed) => {
  const cwd = await temporaryFolder();
  const call = `{name: shell, args: {command: ${command}}}`;
  await writeFile(join(cwd, 'script.yaml'), `answers:\n  - {calls: [${call}]}\n  - {text: Done.}\n`);
  const { code } = await drover(['exec', 'go', '--model', 'rehearsal/script.yaml', '--view', 'silent', ...args], {
    cwd,
  });
  expect(code).toBe(isAllowed ? 0 : 8);
});
