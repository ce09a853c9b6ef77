// Runs a command inside and outside the sandbox, each in a fresh copy of the project at the same path, and compares.

import { execFile } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import type { SandboxPolicy, SandboxSystem } from '@drover/sandbox/policy';
import { findProgramOn } from '@drover/core/tools/process/program';
import { box, type Ran, runInside, runOutside, temporary } from '../box.ts';
import { sideBySide } from '../parallel.ts';
import type { Everyday } from './all.ts';
import { makeProject } from './project.ts';

const COMMAND_MS_MAX = 100_000;
const SHOWN_CHARS = 400;

const copyTree = promisify(execFile);

export type Comparison = { readonly command: string; readonly outside: string; readonly inside: string };

/** Commands that behaved differently. Those whose program is missing are skipped, with a line on stderr. */
export async function compareAll(system: SandboxSystem, commands: readonly Everyday[]): Promise<readonly Comparison[]> {
  const path = process.env['PATH'] ?? '';
  const missing = new Set(commands.map(({ needs }) => needs).filter((name) => findProgramOn(path, name) === undefined));
  if (missing.size > 0)
    process.stderr.write(
      `\n*** LEFT OUT, for want of a program: everyday commands with ${[...missing].join(', ')}.\n\n`,
    );
  const project = join(temporary(), 'project');
  makeProject(project);
  const here = commands.filter(({ needs }) => !missing.has(needs));
  const compared = await sideBySide(here, ({ command }) => compare(system, project, command));
  return compared.filter(({ outside, inside }) => outside !== inside);
}

async function compare(system: SandboxSystem, project: string, command: string): Promise<Comparison> {
  const plain = box(system);
  const home = join(plain.policy.folder, 'home');
  const policy: SandboxPolicy = { ...plain.policy, system: { ...system, home } };
  const env = {
    ...childProcessEnvironment(process.env),
    ...system.toolchainEnv,
    HOME: home,
    TMPDIR: '/tmp',
    LANG: 'C.UTF-8',
    npm_config_update_notifier: 'false', // it uses the network
  };
  const way = { env, timeoutMs: COMMAND_MS_MAX };
  const fresh = async () => {
    for (const folder of [plain.root, home]) rmSync(folder, { recursive: true, force: true });
    mkdirSync(home);
    await copyTree('cp', ['-a', project, plain.root]);
  };
  await fresh();
  const outside = told(await runOutside(plain.root, command, way));
  await fresh();
  const inside = told(await runInside({ policy, root: plain.root }, command, way));
  rmSync(plain.around, { recursive: true, force: true });
  return { command, outside, inside };
}

function told({ exitCode, endedBy, output }: Ran): string {
  // The shell prints the id of a killed process.
  const text = output.replaceAll(/^(bash: line \d+:) +\d+ /gm, '$1 <id> ');
  const shown = text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}… (${text.length} characters)` : text;
  return `${endedBy} ${exitCode}: ${shown}`;
}
