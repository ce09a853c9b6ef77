// The model when the user names none, or names it without its provider: real SDKs against the rehearsal server.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { startRehearsal } from '@drover/rehearsal/server';
import { mkdir, writeFile } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { drover, type Ran, temporaryFolder } from '../fake-io.ts';

type Model = { readonly env: Record<string, string>; readonly asked: () => readonly unknown[] };

/** A scripted server in place of both providers. */
async function servers(...keys: readonly string[]): Promise<Model> {
  const server = await startRehearsal({ answers: [{ text: 'Hello.' }], loop: true });
  onTestFinished(() => server.close());
  const env = {
    ANTHROPIC_BASE_URL: server.baseUrlFor('anthropic'),
    OPENAI_BASE_URL: server.baseUrlFor('openai'),
    ...Object.fromEntries(keys.map((key) => [key, 'sk-test'])),
  };
  return { env, asked: () => server.requests.map(({ body }) => (body as { model?: unknown }).model) };
}

async function repository(): Promise<string> {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'a.txt'), 'a\n');
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', ...args], { cwd });
  git('init', '-q');
  git('add', 'a.txt');
  git('commit', '-qm', 'first');
  return cwd;
}

const firstLine = ({ stderr }: Ran) => stderr.split('\n')[0];

test.each([
  [['ANTHROPIC_API_KEY'], 'anthropic/claude-sonnet-4-5', 'claude-sonnet-4-5'],
  [['OPENAI_API_KEY'], 'openai/gpt-5', 'gpt-5'],
  [['OPENAI_API_KEY', 'ANTHROPIC_API_KEY'], 'anthropic/claude-sonnet-4-5', 'claude-sonnet-4-5'],
])('exec with %j asks %s, and says so first', async (keys, label, name) => {
  const { env, asked } = await servers(...keys);
  const ran = await drover(['exec', 'go'], { env });
  const key = name.startsWith('claude') ? 'ANTHROPIC_API_KEY' : 'OPENAI_API_KEY';
  expect([ran.code, firstLine(ran), asked()]).toEqual([
    0,
    `drover: using ${label}, because ${key} is set; --model or "model" in your config changes it`,
    [name],
  ]);
});

test('run with one key asks its default model, and says so first', async () => {
  const { env, asked } = await servers('ANTHROPIC_API_KEY');
  const ran = await drover(['run', 'say hello', '--yes', '--workers', '0'], {
    env: { ...env, DROVER_HOME: await temporaryFolder() },
    cwd: await repository(),
  });
  expect(firstLine(ran)).toContain('using anthropic/claude-sonnet-4-5, because ANTHROPIC_API_KEY is set');
  expect(new Set(asked())).toEqual(new Set(['claude-sonnet-4-5']));
});

test.each([
  ['claude-haiku-4-5', ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY'], 'claude-haiku-4-5'],
  ['gpt-5-mini', ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY'], 'gpt-5-mini'],
  ['anthropic/claude-sonnet-9', ['ANTHROPIC_API_KEY'], 'claude-sonnet-9'],
])('--model %s finds its provider', async (model, keys, name) => {
  const { env, asked } = await servers(...keys);
  const { code, stderr } = await drover(['exec', 'go', '--model', model], { env });
  expect([code, stderr, asked()]).toEqual([0, '', [name]]);
});

test.each([
  ['claude-sonet-4-5', "there is no model 'claude-sonet-4-5'; did you mean claude-sonnet-4-5?"],
  [
    'anthropic/claude-sonet-4-5',
    `anthropic has no model 'claude-sonet-4-5' that drover knows; did you mean claude-sonnet-4-5? If the name is right, set its price under "prices" in your config`,
  ],
])('--model %s gets a suggestion before the first request', async (model, sentence) => {
  const { env, asked } = await servers('ANTHROPIC_API_KEY');
  const ran = await drover(['exec', 'go', '--model', model], { env });
  expect([ran, asked()]).toEqual([{ code: 2, stdout: '', stderr: `drover: ${sentence}\n` }, []]);
});

test('a bare name that two providers serve is an error that names both', async () => {
  const cwd = await temporaryFolder();
  await mkdir(join(cwd, '.config', 'drover'), { recursive: true });
  await writeFile(
    join(cwd, '.config', 'drover', 'config.yaml'),
    'providers: {far: {api: openai, baseUrl: "http://127.0.0.1:9"}}\nprices: {far/gpt-5: {input: 1, output: 1}}\n',
  );
  const ran = await drover(['exec', 'go', '--model', 'gpt-5'], { cwd, env: { OPENAI_API_KEY: 'k' } });
  expect([ran.code, ran.stderr]).toEqual([
    2,
    'drover: --model gpt-5 could be openai/gpt-5 or far/gpt-5; write one of them\n',
  ]);
});
