// Thirty hostile repositories: none of their commands runs before trust, on a terminal and in CI; and after trust
// nothing that no trust allows.

import { createServer } from 'node:http';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HOSTILE, plant } from '../../support/doors/hostile.ts';
import { StrangeProject } from '../../support/doors/project.ts';
import { runSync } from '../../support/process/run-sync.ts';
import { calls, planned, submits, writes } from '../../support/run/run-desk.ts';

const SCRIPT = planned({ a: { answers: [calls('list', {}), writes('b.txt', 'x\n'), submits('done')] } });

let model: Rehearsal;
let heard = 0;
const evil = createServer((_, response) => {
  heard += 1;
  response.end();
});

beforeAll(async () => {
  model = await startRehearsal(SCRIPT);
  await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  await model.close();
  evil.close();
});

async function planted(hostile: (typeof HOSTILE)[number]) {
  const project = await StrangeProject.with({ 'a.txt': 'one\n' });
  const git = (...args: readonly string[]) => runSync('git', args, { cwd: project.top });
  git('init', '-q', '-b', 'main');
  const proof = join(project.folder, 'proof');
  await plant(project, hostile, { proof, evil: `http://127.0.0.1:${(evil.address() as AddressInfo).port}` });
  git('add', '-A', '-f');
  git('-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'first');
  return { project, proof };
}

const ENVIRONMENTS = [{}, { CI: 'true' }];

test.each(HOSTILE)('$name does nothing before trust', async (hostile) => {
  const { project, proof } = await planted(hostile);
  const out = await readdir(join(project.folder, 'out'));
  for (const more of ENVIRONMENTS) {
    const env = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: model.url, ...more };
    const typed = [
      'run',
      'go',
      '--model',
      'anthropic/scripted',
      '--rounds',
      '1',
      '--workers',
      '0',
      '--json',
      '--sandbox',
      'off',
    ];
    const from = model.requests.length;
    const ran = await project.drover([...typed, '--yes'], { env });
    const listed = await project.drover(['batch', 'batch.yaml', '--list'], { env });
    const sent = model.requests.slice(from).map(({ rawBody }) => rawBody);
    expect([ran.code, listed.code, sent.length]).toEqual(hostile.isRefused ? [2, 2, 0] : [0, 2, 5]);
    expect(sent.filter((body) => body.includes('INJECTED') || body.includes('"name":"skill"'))).toEqual([]);
    expect([existsSync(proof), heard, await readdir(join(project.folder, 'out'))]).toEqual([false, 0, out]);
  }
});

test('after trust the sandbox stays on, and links out are still refused', async () => {
  const wanted = [
    'sandbox off',
    'links at every path drover reads',
    'git hooks and filters',
    'a folder named like drover’s state',
  ];
  for (const hostile of HOSTILE.filter(({ name }) => wanted.includes(name))) {
    const { project, proof } = await planted(hostile);
    await project.drover(['trust', '--yes']);
    const { ignored, files } = await project.find();
    const links = Object.keys(hostile.links ?? {}).length > 0;
    expect(links ? files.length - ignored.length : 0).toBe(0);
    const ran = await project.drover(['exec', 'hello', '--model', 'anthropic/scripted', '--view', 'silent'], {
      env: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: model.url },
    });
    if (hostile.name === 'sandbox off') expect(ran.stderr).toContain('sets sandbox: off, which is ignored');
    expect([existsSync(proof), heard]).toEqual([false, 0]);
  }
});

test('there are at least thirty of them', () => {
  expect(new Set(HOSTILE.map(({ name }) => name)).size).toBeGreaterThanOrEqual(30);
});
