// A temporary workspace with real files, and tools called as the loop calls them.

import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { newId } from '@drover/core/ids';
import type { Json } from '@drover/protocol/json';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { runTool, type Tool, type ToolContext, type ToolOutput } from '@drover/core/tools/tool';
import { onTestFinished } from 'vitest';

export const never = new AbortController().signal;

export type Workspace = {
  readonly cwd: string;
  readonly outputFolder: string;
  readonly context: (signal?: AbortSignal) => ToolContext;
  /** Parses the arguments and runs the tool; throws if they are invalid. */
  readonly call: (tool: Tool, args: Json, signal?: AbortSignal) => Promise<ToolOutput>;
};

export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'drover-test-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function workspace(files: Readonly<Record<string, string | Buffer>> = {}): Promise<Workspace> {
  const folder = await temporaryFolder();
  const cwd = join(folder, 'workspace');
  const outputFolder = join(folder, 'output');
  await mkdir(cwd);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), content);
  }
  const context = (signal: AbortSignal = never): ToolContext => ({
    cwd,
    callId: newId('call'),
    env: childProcessEnvironment(process.env),
    outputFolder,
    signal,
  });
  return {
    cwd,
    outputFolder,
    context,
    async call(tool, args, signal) {
      const parsed = tool.parse(args);
      if (!parsed.ok) throw new Error(parsed.problem);
      return runTool(tool, parsed.input, context(signal));
    },
  };
}

/** Runs one call in a new workspace. */
export async function callIn(
  files: Readonly<Record<string, string | Buffer>>,
  tool: Tool,
  args: Json,
): Promise<ToolOutput> {
  return (await workspace(files)).call(tool, args);
}

/**
 * The largest growth of this process's memory during the work, in bytes: in total, and of buffers alone, which includes
 * those that wait for the collector.
 */
export async function memoryGrowthDuring(
  work: () => Promise<unknown>,
): Promise<{ readonly all: number; readonly buffers: number }> {
  const now = () => ({ all: process.memoryUsage.rss(), buffers: process.memoryUsage().arrayBuffers });
  const before = now();
  let peak = before;
  const look = () => {
    const { all, buffers } = now();
    peak = { all: Math.max(peak.all, all), buffers: Math.max(peak.buffers, buffers) };
  };
  const watch = setInterval(look, 10);
  try {
    await work();
  } finally {
    clearInterval(watch);
  }
  look();
  return { all: peak.all - before.all, buffers: peak.buffers - before.buffers };
}
