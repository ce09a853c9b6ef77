// A client generated from the OpenAPI document compiles, and its types separate events and failures.
//
// npm installs the generator and its compiler for this test alone. Without a registry it is skipped, with a line on
// stderr.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serveDesk } from '../../support/serve/serve-desk.ts';
import { temporaryFolder } from '../../support/workspace.ts';

const PACKAGES = ['openapi-typescript@7.13.0', 'typescript@5.9.3'];

const CLIENT = `
import type { components, paths } from './generated.ts';

type Event = components['schemas']['Event'];
type Begin = NonNullable<paths['/v1/sessions']['post']['requestBody']>['content']['application/json'];

export const begin: Begin = {
  messages: [{ role: 'user', content: 'Hello' }],
  options: { temperature: 0.2 },
  tools: [{ name: 'now', description: 'The time.', schema: { type: 'object' }, timeoutMs: 1000 }],
};

export function told(event: Event): string {
  switch (event.type) {
    case 'text_delta':
      return event.delta;
    case 'session_end':
      return event.outcome;
    default:
      return '';
  }
}
`;

const MISTAKES = {
  'an unknown event': "export const wrong = (event: Event) => event.type === 'text_delte';",
  'text taken for a number':
    "export const wrong = (event: Event): number => (event.type === 'text_delta' ? event.delta : 0);",
  'a message without content': "export const wrong: Begin = { messages: [{ role: 'user' }] };",
};

test('a generated client compiles, and finds mistakes', async () => {
  const folder = await temporaryFolder();
  const run = (program: string, args: readonly string[]) =>
    execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
  try {
    run('npm', ['install', '--no-audit', '--no-fund', ...PACKAGES]);
  } catch (error) {
    process.stderr.write(`\n*** LEFT OUT, because npm can't install ${PACKAGES.join(' ')}: ${String(error)}\n\n`);
    return;
  }
  const { ask } = await serveDesk({});
  writeFileSync(join(folder, 'openapi.json'), await (await ask('GET', '/v1/openapi.json')).text());
  run('npx', ['openapi-typescript', 'openapi.json', '--output', 'generated.ts']);
  const complaint = (source: string): string => {
    writeFileSync(join(folder, 'client.ts'), source);
    const flags = ['--strict', '--noEmit', '--skipLibCheck', '--allowImportingTsExtensions'];
    try {
      return run('npx', ['tsc', ...flags, '--module', 'nodenext', 'client.ts']);
    } catch (error) {
      return String((error as { readonly stdout: string }).stdout);
    }
  };
  expect(complaint(CLIENT)).toBe('');
  for (const [what, line] of Object.entries(MISTAKES))
    expect([what, complaint(`${CLIENT}\n${line}\n`)]).toEqual([what, expect.stringMatching(/client\.ts.*error TS/)]);
});
