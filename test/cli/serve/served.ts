// drover serve with a repository and a script for the model: as a process, or in this one.

import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DroverClient } from '@drover/client/client';
import { expect, onTestFinished } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { FakeIo, temporaryFolder } from '../fake-io.ts';
import { Program } from '../program.ts';

/** A sleep that only the server ends, with a number that no other process on this machine uses. */
export const LONG = [1, 2, 3].map((n) => `3600.${process.pid}${n}`);

const SCRIPT = `
agents:
  one: {assigned: 'Your task is one:', order: conversation, answers: &work
    [{calls: [{name: write, args: {path: one.txt, content: "one"}}]}, {text: Done.}]}
  two: {assigned: 'Your task is two:', order: conversation, answers:
    [{calls: [{name: shell, args: {command: 'true; sleep ${LONG[0]}'}}]}, {text: Done.}]}
  three: {assigned: 'Your task is three:', order: conversation, answers:
    [{calls: [{name: shell, args: {command: touch asked.txt}}]}, {text: Done.}]}
answers:
  - {when: {text: Ask in a run}, calls: [{name: submit_plan, args: {tasks: [{id: three, title: Three, prompt: Ask}]}}]}
  - {when: {text: one file}, calls: [{name: submit_plan, args: {tasks: [{id: one, title: One, prompt: Write}]}}]}
  - {when: {text: for ever}, calls: [{name: submit_plan, args: {tasks: [{id: two, title: Two, prompt: Wait}]}}]}
  - {when: {text: Ask me}, calls: [{name: shell, args: {command: touch asked.txt}}]}
  - {when: {text: Take long}, calls: [{name: shell, args: {command: 'true; sleep ${LONG[1]}'}}]}
  - {when: {text: Stay}, calls: [{name: shell, args: {command: 'trap "" INT TERM HUP; sleep ${LONG[2]}; sleep ${LONG[2]}'}}]}
  - {when: {text: Fill in}, calls: [{name: mcp__remote__ask}]}
  - {when: {text: Far away}, calls: [{name: far_away}]}
  - {when: {text: it is far}, text: So far.}
otherwise: {text: Nothing more.}
`;

type Where = { readonly url: string; readonly address: string; readonly port: number; readonly tokenFile: string };

/** A folder with a script and a repository named project. */
export async function desk(): Promise<string> {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'script.yaml'), SCRIPT);
  await mkdir(join(cwd, 'project'));
  const git = (...args: string[]) =>
    promisify(execFile)('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', ...args], {
      cwd: join(cwd, 'project'),
    });
  await git('init', '-q', '-b', 'main');
  await git('commit', '-q', '--allow-empty', '-m', 'first');
  return cwd;
}

export const PATIENT = { timeout: 20_000, interval: 10 };
export const SERVE = ['serve', '--port', '0', '--json', '--cwd', 'project', '--model', 'rehearsal/script.yaml'];

/** A server in a process of its own. */
export async function served(cwd: string, args: readonly string[] = []) {
  const program = new Program([...SERVE, ...args], cwd);
  await program.printed('\n');
  return { program, ...(await reached(program.stdout)) };
}

/** The same server in this process, which is faster. */
export async function servedHere(cwd: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const fake = new FakeIo({ cwd, env });
  const ending = main([...SERVE, ...args], fake.io);
  const stop = async () => {
    fake.stop('SIGTERM');
    await ending;
  };
  onTestFinished(stop);
  await expect.poll(() => fake.stdout, PATIENT).toContain('\n');
  return { stop, ...(await reached(fake.stdout)), stderr: () => fake.stderr };
}

async function reached(said: string) {
  const where = JSON.parse(said) as Where;
  const token = (await readFile(where.tokenFile, 'utf8')).trim();
  return { where, token, client: new DroverClient({ baseUrl: where.url, token }) };
}
