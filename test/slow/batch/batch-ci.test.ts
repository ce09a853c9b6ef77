// The example CI files, run without the CI systems: their commands, in order, with their inputs.

import { execFileSync, spawn } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { loadRehearsalScript } from '@drover/rehearsal/load';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import { EXAMPLES, MODEL, resultsIn, sample } from '../../support/example-sample.ts';

type Machine = { readonly cwd: string; readonly env: Record<string, string> };

/** A machine like a CI runner: a fresh clone, drover and its programs on the PATH, a home of its own. */
async function machine(folder: string, name: string, server: Rehearsal): Promise<Machine> {
  const tools = join(folder, 'tools');
  await mkdir(tools, { recursive: true });
  const scripts = {
    npx: `#!/bin/sh\nshift\nexec "${process.execPath}" "${resolve('bin/drover.ts')}" "$@"\n`,
    npm: '#!/bin/sh\n',
    sudo: '#!/bin/sh\n', // the sandbox is installed here
    gh: `#!/bin/sh\necho "$@" >> "${folder}/gh.log"\n`,
  };
  for (const [tool, text] of Object.entries(scripts)) {
    await writeFile(join(tools, tool), text);
    await chmod(join(tools, tool), 0o755);
  }
  const cwd = join(folder, name);
  execFileSync('git', ['clone', '-q', join(folder, 'origin.git'), cwd]);
  const home = join(folder, `${name}-home`);
  await mkdir(home);
  const env = {
    PATH: `${tools}:${process.env['PATH']}`,
    HOME: home,
    CI: 'true',
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_BASE_URL: server.url,
  };
  return { cwd, env };
}

function shell(command: string, { cwd, env }: Machine): Promise<{ readonly code: number; readonly out: string }> {
  const child = spawn('bash', ['-eo', 'pipefail', '-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (out += chunk.toString()));
  return new Promise((done) => child.once('close', (code) => done({ code: code ?? -1, out })));
}

/** A sample repository with the spec, on a server that the machines clone from. */
async function project(): Promise<{ readonly folder: string; readonly server: Rehearsal }> {
  const { folder, shop } = await sample(4);
  await writeFile(join(shop, 'refactor.yaml'), await readFile(join(EXAMPLES, 'no-console.yaml')));
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: shop });
  git('add', '-A');
  git('-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'the spec');
  git('clone', '-q', '--bare', '.', join(folder, 'origin.git'));
  const server = await startRehearsal(await loadRehearsalScript(MODEL));
  onTestFinished(() => server.close());
  return { folder, server };
}

type Step = { readonly run?: string; readonly uses?: string; readonly with?: Readonly<Record<string, string>> };
type Workflow = { readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>> };

test('the GitHub Actions workflow: two shards, one report, one pull request', async () => {
  const { folder, server } = await project();
  const { jobs } = parse(await readFile(join(EXAMPLES, 'ci', 'github-actions.yaml'), 'utf8')) as Workflow;
  const summary = join(folder, 'summary.md');
  const steps = async (job: string, on: Machine, values: Readonly<Record<string, string>>) => {
    const filled = (text: string) =>
      text.replaceAll(/\$\{\{ *([\w.]+) *\}\}/g, (_, name: string) => values[name] ?? '');
    const env = { ...on.env, GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: summary };
    for (const { run, uses, with: given = {} } of jobs[job]?.steps ?? []) {
      const artifacts = join(folder, 'artifacts');
      if (uses?.startsWith('actions/upload-artifact'))
        await shell(`mkdir -p ${artifacts} && cp -R ${given['path']} ${artifacts}/${filled(given['name'] ?? '')}`, on);
      if (uses?.startsWith('actions/download-artifact')) await shell(`cp -R ${artifacts} ${given['path']}`, on);
      if (run === undefined) continue;
      const { code, out } = await shell(filled(run), { ...on, env });
      expect([run, code, code === 0 ? '' : out]).toEqual([run, 0, '']);
    }
  };
  for (const shard of ['1', '2'])
    await steps('batch', await machine(folder, `shard-${shard}`, server), { 'matrix.shard': shard });
  const last = await machine(folder, 'report', server);
  await steps('report', last, { 'github.run_id': '77' });
  expect((await resultsIn(join(last.cwd, 'drover-out'))).map(({ status }) => status)).toEqual([
    'landed',
    'landed',
    'landed',
    'landed',
  ]);
  expect(await readFile(join(folder, 'gh.log'), 'utf8')).toContain('pr create --head refactor-77');
  const pushed = execFileSync('git', ['show', 'refactor-77:src/billing/create.js'], {
    cwd: join(folder, 'origin.git'),
    encoding: 'utf8',
  });
  expect(pushed).toContain("log.info('create'");
  expect((await readFile(summary, 'utf8')).match(/tasks are done/g)).toHaveLength(3);
});

type Gitlab = Readonly<
  Record<string, { readonly script: readonly string[]; readonly after_script?: readonly string[] }>
>;

test('the GitLab snippet runs parallel jobs, one report, and a shared cache', async () => {
  const { folder, server } = await project();
  const jobs = parse(await readFile(join(EXAMPLES, 'ci', 'gitlab-ci.yaml'), 'utf8')) as Gitlab;
  const run = async (job: string, on: Machine, env: Readonly<Record<string, string>>) => {
    for (const part of [jobs[job]?.script ?? [], jobs[job]?.after_script ?? []]) {
      const { code, out } = await shell(part.join('\n'), { ...on, env: { ...on.env, ...env } });
      expect([job, code, code === 0 ? '' : out]).toEqual([job, 0, '']);
    }
  };
  const last = await machine(folder, 'report', server);
  for (const index of ['1', '2']) {
    const on = await machine(folder, `job-${index}`, server);
    await run('refactor', on, { CI_NODE_INDEX: index, CI_NODE_TOTAL: '2' });
    await shell(`mkdir -p ${last.cwd}/drover-out && cp -R drover-out/. ${last.cwd}/drover-out/`, on);
  }
  await run('refactor-report', last, {});
  expect((await resultsIn(join(last.cwd, 'drover-joined'))).length).toBe(4);

  const before = server.requests.length;
  const next = await machine(folder, 'next', server);
  await shell(`cp -R ../job-1/.drover-cache .`, next);
  await run('refactor', next, { CI_NODE_INDEX: '1', CI_NODE_TOTAL: '2' });
  expect(server.requests.length).toBe(before);
});
