// A stored session with remote tools; a later one with the same id reads what it wrote.

import { readFile } from 'node:fs/promises';
import type { Recorded } from '@drover/protocol/events';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import { remoteTool } from '@drover/core/tools/remote';
import { defineTool, type Tool } from '@drover/core/tools/tool';
import type { Answer, Script } from '@drover/rehearsal/script';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { agentOn, type Rehearsed, type Settings } from '../agent.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };

export const local: Tool = defineTool({
  name: 'local',
  description: 'Runs here.',
  input: z.object({ n: z.number() }),
  access: 'none',
  subject: ({ n }) => `${n}`,
  run: async ({ n }) => `local ${n}`,
});

export const remote: Tool = remoteTool({
  name: 'remote',
  description: 'Runs elsewhere.',
  schema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
});

/** An answer with these calls, each with its position among them. */
export const calls = (...names: readonly string[]): Answer => ({
  calls: names.map((name, n) => ({ name, args: { n } })),
});

export type Kept = Rehearsed & {
  readonly die: () => Promise<void>;
  readonly records: () => Promise<readonly Recorded[]>;
  readonly bytes: () => Promise<string>;
};

/** One process's part of the session `s`. The model goes by the conversation, so a script can be reused. */
export async function keptSession(home: string, script: Script, settings: Settings = {}): Promise<Kept> {
  const { store, past, close } = await openSessionJournal(home, 's', HOOKS);
  onTestFinished(close);
  const rehearsed = await agentOn(
    { order: 'conversation', ...script },
    { tools: [local, remote], ...settings, id: 's', store, ...(past && { past }) },
  );
  const path = journalPath(home, 's');
  return {
    ...rehearsed,
    die: close,
    records: async () => (await readJournalFile(path)).records as unknown as readonly Recorded[],
    bytes: () => readFile(path, 'utf8'),
  };
}
