// Builds the published bundle in a folder of the test.

import { symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build, type RolldownOptions } from 'rolldown';
import parts from '../../rolldown.config.ts';

type Changes = {
  /** The source that the process starts with in place of drover's entry, which it imports. */
  readonly child?: string;
  /** The entry of its threads in place of drover's own. */
  readonly worker?: string;
  readonly minify?: false;
};

export async function bundleInto(dir: string, { child, worker, ...changes }: Changes = {}): Promise<void> {
  const own = worker === undefined ? parts : parts.map((part) => workedBy(part, worker));
  const made = child === undefined ? own : own.map((part) => begunBy(part, child));
  for (const part of made) {
    const [output] = [part.output ?? []].flat();
    await build({ ...part, output: { ...output, ...changes, dir }, logLevel: 'silent' });
  }
  // ripgrep is a program, so it is in no bundle; an installed package has it beside the bundle.
  await symlink(resolve('node_modules'), join(dir, 'node_modules'));
}

function begunBy(part: RolldownOptions, child: string): RolldownOptions {
  const { drover, ...others } = part.input as Readonly<Record<string, string>>;
  if (drover === undefined) return part;
  return { ...part, input: { ...others, child }, transform: { define: { 'import.meta.main': 'false' } } };
}

function workedBy(part: RolldownOptions, worker: string): RolldownOptions {
  return 'worker' in (part.input as object) ? { ...part, input: { worker } } : part;
}
