// drover's own secrets are in no request: not from the prompt, an instructions file or a tool, in a session or a run.
// Tokens that only look like secrets reach the model.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Script } from '@drover/rehearsal/script';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import { expect, onTestFinished, test } from 'vitest';
import { APIS } from '../../support/agent.ts';
import { fill, PLANTED } from '../../support/data/planted-secrets.ts';
import { proves } from '../../support/proves.ts';
import { calls, planned, RunDesk, says, submits } from '../../support/run/run-desk.ts';
import { drover, temporaryFolder } from '../fake-io.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const KEY = `sk-ant-api03-${fill(LETTERS, 60, 'own')}`;
const OTHER_KEY = fill(LETTERS, 40, 'other'); // without a known shape
const TOKEN = fill(LETTERS, 43, 'server');
const OWN = [KEY, OTHER_KEY, TOKEN];
const FOREIGN = PLANTED.find(({ id }) => id === 'github-personal-token')?.text ?? '';
const DEBRIS = `key ${KEY}, other ${OTHER_KEY}, token ${TOKEN}; base64 ${btoa(`x${KEY}`)}; foreign ${FOREIGN}`;

async function rehearsed(script: Script): Promise<Rehearsal> {
  const server = await startRehearsal(script);
  onTestFinished(() => server.close());
  return server;
}

/** A folder whose files hold all secrets, with a provider that the user's config declares. */
async function folderOn(server: Rehearsal) {
  const cwd = await temporaryFolder();
  const home = join(cwd, 'state');
  await mkdir(home);
  await mkdir(join(cwd, '.git'));
  await mkdir(join(cwd, '.config/drover'), { recursive: true });
  await writeFile(join(home, 'server-token'), `${TOKEN}\n`);
  await writeFile(join(cwd, 'AGENTS.md'), `Rules: ${DEBRIS}\n`);
  await writeFile(join(cwd, 'notes.txt'), `${DEBRIS}\n`);
  const providers = APIS.map(
    (api) => `  my-${api}: {api: ${api}, baseUrl: "${server.baseUrlFor(api)}", keyEnv: MY_ACCESS}\n`,
  );
  await writeFile(join(cwd, '.config/drover/config.yaml'), `providers:\n${providers.join('')}`);
  return { cwd, env: { DROVER_HOME: home, ANTHROPIC_API_KEY: KEY, MY_ACCESS: OTHER_KEY } };
}

const bodies = (server: Rehearsal): string => server.requests.map(({ body }) => JSON.stringify(body)).join('\n');

const leaks = (text: string): readonly string[] =>
  [...OWN, btoa(`x${KEY}`).slice(4, -4)].filter((secret) => text.includes(secret));

test.each(APIS)('%s: a session sends no secret, and does send lookalikes', async (api) => {
  const server = await rehearsed({
    answers: [
      {
        calls: [
          { name: 'read', args: { path: 'notes.txt' } },
          { name: 'shell', args: { command: 'cat notes.txt; exit 1' } },
          { name: 'grep', args: { pattern: 'token' } },
        ],
      },
      { text: 'Done.' },
    ],
  });
  const given = await folderOn(server);
  const argv = ['exec', `What is ${DEBRIS}?`, '--model', `my-${api}/any`, '--yes', '--view', 'silent'];
  const { code } = await drover(argv, given);
  const sent = bodies(server);
  expect([code, server.requests.length, leaks(sent)]).toEqual([0, 2, []]);
  // The system prompt and the prompt twice each, and two results; grep shows only the beginning of a long line.
  expect(sent.split(FOREIGN).length - 1).toBe(2 + 2 + 2);
  expect(sent).toContain('key [redacted:value], other [redacted:value], token [redacted:value]');
});

test('a resumed session sends the same bytes for its history', async () => {
  const server = await rehearsed({
    answers: [{ calls: [{ name: 'read', args: { path: 'secret.txt' } }] }, { text: 'One.' }, { text: 'Two.' }],
  });
  const given = await folderOn(server);
  await writeFile(join(given.cwd, 'secret.txt'), `ANTHROPIC_API_KEY=${KEY}\nurl https://u:${OTHER_KEY}@host/\n`);
  const argv = ['--model', 'my-openai-chat/any', '--session', 's', '--view', 'silent'];
  await drover(['exec', `Look at ${KEY}.`, ...argv], given);
  await drover(['exec', 'And now?', ...argv], given);
  const [before, after] = server.requests
    .slice(1)
    .map(({ body }) => (body as { messages: readonly unknown[] }).messages);
  expect(leaks(bodies(server))).toEqual([]);
  expect(JSON.stringify(after?.slice(0, before?.length))).toBe(JSON.stringify(before));
});

proves('secrets.unsent', 'a run sends no secret, from any thread', async () => {
  for (const workers of ['0', '1']) await runSendsNone(workers);
});

async function runSendsNone(workers: string): Promise<void> {
  const desk = await RunDesk.with(
    planned({ look: { answers: [calls('read', { path: 'notes.txt' }), says(`I saw it.`), submits('Seen.')] } }),
    { 'notes.txt': `${DEBRIS}\n`, 'AGENTS.md': `Rules: ${DEBRIS}\n` },
  );
  const env = { ANTHROPIC_API_KEY: KEY, OPENAI_API_KEY: OTHER_KEY };
  await mkdir(desk.home);
  await writeFile(join(desk.home, 'server-token'), `${TOKEN}\n`);
  const { code } = await desk.drover(['run', `Look at ${DEBRIS}`, '--yes', '--workers', workers], { env });
  const sent = bodies(desk.server);
  expect([code, leaks(sent)]).toEqual([0, []]);
  expect(sent.split(FOREIGN).length).toBeGreaterThan(4);
}
