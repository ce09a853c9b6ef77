// Builds the published bundle in a folder of the test.

import { build, type RolldownOptions } from 'rolldown';
import parts from '../../rolldown.config.ts';

type Changes = {
  /** What the process begins with instead of drover's own program, which is then only a part. */
  readonly child?: string;
  readonly minify?: false;
};

export async function bundleInto(dir: string, { child, ...changes }: Changes = {}): Promise<void> {
  const made = child === undefined ? parts : parts.map((part) => begunBy(part, child));
  for (const part of made) {
    const [output] = [part.output ?? []].flat();
    await build({ ...part, output: { ...output, ...changes, dir }, logLevel: 'silent' });
  }
}

function begunBy(part: RolldownOptions, child: string): RolldownOptions {
  const { drover, ...others } = part.input as Readonly<Record<string, string>>;
  if (drover === undefined) return part;
  return { ...part, input: { ...others, child }, transform: { define: { 'import.meta.main': 'false' } } };
}
