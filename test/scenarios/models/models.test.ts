// drover models: providers and their keys, known models and prices, the default, and the roles in force.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drover, temporaryFolder } from '../../cli/fake-io.ts';

const CONFIG = `models:
  plan: claude-opus-4-5
  work: [anthropic/claude-sonnet-4-5, local/qwen]
providers:
  local: { api: openai-chat, baseUrl: 'http://user:secret@127.0.0.1:8080/v1', keyEnv: LOCAL_KEY }
prices:
  local/qwen: { input: 0.5, output: 1 }
`;

async function withConfig(text: string): Promise<string> {
  const cwd = await temporaryFolder();
  await mkdir(join(cwd, '.config', 'drover'), { recursive: true });
  await writeFile(join(cwd, '.config', 'drover', 'config.yaml'), text);
  return cwd;
}

test('models --json has keys as yes or no, prices, the default and the roles', async () => {
  const cwd = await withConfig(CONFIG);
  const env = { ANTHROPIC_API_KEY: 'sk-very-secret', OPENAI_BASE_URL: 'http://proxy.example/v1' };
  const ran = await drover(['models', '--json'], { cwd, env });
  const listed = JSON.parse(ran.stdout) as { models: readonly { model: string }[] };
  expect(ran.code).toBe(0);
  expect(listed).toMatchObject({
    providers: [
      { provider: 'anthropic', keyEnv: 'ANTHROPIC_API_KEY', hasKey: true },
      { provider: 'openai', keyEnv: 'OPENAI_API_KEY', hasKey: false, baseUrl: 'http://proxy.example/v1' },
      { provider: 'openai-chat', keyEnv: 'OPENAI_API_KEY', hasKey: false, baseUrl: 'http://proxy.example/v1' },
      { provider: 'local', keyEnv: 'LOCAL_KEY', hasKey: false, baseUrl: 'http://127.0.0.1:8080/v1' },
    ],
    default: { model: 'anthropic/claude-sonnet-4-5', because: 'ANTHROPIC_API_KEY is set' },
    roles: {
      plan: ['anthropic/claude-opus-4-5'],
      work: ['anthropic/claude-sonnet-4-5', 'local/qwen'],
    },
  });
  expect(listed.models).toContainEqual({
    model: 'openai/gpt-5',
    contextTokens: 400_000,
    price: { input: 1.25, output: 10, cacheRead: 0.125, cacheWrite: 1.25 },
  });
  expect(listed.models).toContainEqual(
    expect.objectContaining({ model: 'local/qwen', price: { input: 0.5, output: 1, cacheRead: 0.5, cacheWrite: 0.5 } }),
  );
  expect(ran.stdout).not.toMatch(/secret/);
});

test('models prints tables that fit the terminal, and says what to do without a key', async () => {
  const { code, stdout } = await drover(['models'], { columns: 60 });
  expect(code).toBe(0);
  expect(stdout).toContain('anthropic    ANTHROPIC_API_KEY is not set');
  expect(stdout).toContain('default  none: pass --model, or set a key');
  expect(stdout.split('\n').filter((line) => line.length > 60)).toEqual([]);
});

test('models marks the default, and shows a role that is unreadable as unknown', async () => {
  const cwd = await withConfig('models: { work: nobody/knows }\n');
  const { stdout } = await drover(['models'], { cwd, env: { OPENAI_API_KEY: 'k' } });
  expect(stdout).toMatch(/openai\/gpt-5 .*\$1\.25 in, \$10 out .*default\n/);
  expect(stdout).toContain('work     nobody/knows (unknown)');
});
