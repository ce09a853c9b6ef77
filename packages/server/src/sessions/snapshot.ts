// A session as it stands in its journal.

import { readFile } from 'node:fs/promises';
import type { OpenQuestion, PartialBlock, SessionSnapshot } from '@drover/client/wire';
import type { Recorded } from '@drover/core/events';
import { DroverError } from '@drover/core/failure';
import { FORMAT_VERSION, readContents } from '@drover/core/journal/format';
import { pastOf, type Past } from '@drover/core/journal/history';
import { titleOf } from '@drover/core/journal/sessions';
import { isJsonObject, type JsonObject } from '@drover/core/json';
import type { Progress } from '../streams/feed.ts';

/** What is readable of a journal, and why it isn't all of it. */
export type Kept = { readonly records: readonly JsonObject[]; readonly problem: DroverError | undefined };

export async function readKept(path: string): Promise<Kept> {
  const { records, version, damage } = readContents(await readFile(path));
  if (version > FORMAT_VERSION)
    return { records: [], problem: new DroverError({ kind: 'journal.newer', path, version }) };
  const problem = damage && new DroverError({ kind: 'journal.damaged', path, ...damage });
  return { records, problem };
}

/** How a session stands besides its journal. */
export type Standing = {
  /** This process, or another one, is at its last turn. */
  readonly isAtWork: boolean;
  /** What was told here, if this process has the session at work. */
  readonly progress: Progress | undefined;
};

export function snapshotOf(
  id: string,
  records: readonly JsonObject[],
  { isAtWork, progress }: Standing,
): SessionSnapshot | undefined {
  const past = pastOf(records);
  if (past === undefined) return undefined;
  const status = statusOf(past, isAtWork);
  const partial = status === 'running' ? partialAnswer(records, progress) : [];
  return {
    id,
    seq: Math.max(lastSeqIn(records), progress?.seq ?? 0),
    status,
    ...(past.ending !== undefined && status === 'idle' && { ending: past.ending }),
    model: past.model,
    cwd: past.cwd,
    title: titleOf(askedFirst(past)),
    messages: past.messages,
    ...(partial.length > 0 && { partial }),
    tools: past.remoteTools.map(({ name, description, schema }) => ({
      name,
      description,
      schema: isJsonObject(schema) ? schema : {},
    })),
    pending: past.open?.pending ?? [],
    questions: status === 'running' ? openQuestions(records) : [],
    usage: past.usage,
    ...(past.cost !== undefined && { cost: past.cost }),
  };
}

/**
 * The blocks of the answer in progress. Blocks that have ended come from the journal. The text of an open one comes
 * from the deltas told here; where another process answers, from the notes that it makes every second.
 */
function partialAnswer(records: readonly JsonObject[], progress: Progress | undefined): readonly PartialBlock[] {
  const blocks = new Map<number, PartialBlock>();
  for (const event of eventsOf(records)) {
    switch (event.type as Recorded['type'] | 'partial') {
      case 'message_start':
      case 'message_end':
      case 'attempt_discarded':
        blocks.clear();
        break;
      case 'partial':
        noteIn(blocks, event as unknown as Note);
        break;
      case 'text_end':
      case 'thinking_end': {
        const { part, text, type } = event as Extract<Recorded, { readonly type: 'text_end' | 'thinking_end' }>;
        blocks.set(part, { part, type: type === 'text_end' ? 'text' : 'thinking', text });
      }
    }
  }
  for (const block of progress?.open ?? []) blocks.set(block.part, block);
  return [...blocks.values()].toSorted((a, b) => a.part - b.part);
}

type Note = {
  readonly part: number;
  readonly kind: PartialBlock['type'];
  readonly from: number;
  readonly text: string;
};

function noteIn(blocks: Map<number, PartialBlock>, { part, kind: type, from, text }: Note): void {
  const before = blocks.get(part)?.text ?? '';
  blocks.set(part, { part, type, text: before.slice(0, from) + text });
}

function statusOf({ open }: Past, isAtWork: boolean): SessionSnapshot['status'] {
  if ((open?.pending.length ?? 0) > 0) return 'awaiting_tool_execution';
  return isAtWork ? 'running' : 'idle';
}

export function lastSeqIn(records: readonly JsonObject[]): number {
  return eventsOf(records).reduce((last, { seq }) => Math.max(last, seq ?? 0), 0);
}

/** Its last turn, or what was asked of it before, is over: nothing more comes by itself. */
export function isQuiet(records: readonly JsonObject[]): boolean {
  const last = eventsOf(records).findLast(({ type }) => (type as string) !== 'partial');
  return last === undefined || last.type === 'session_end' || last.type === 'session_start';
}

/** Questions that were asked, and not decided since. */
export function openQuestions(records: readonly JsonObject[]): readonly OpenQuestion[] {
  const open = new Map<string, OpenQuestion>();
  for (const event of eventsOf(records)) {
    if (event.type === 'permission_request') open.set(event.requestId, event);
    if (event.type === 'permission_decision') open.delete(event.requestId);
    // Whoever asked before a crash doesn't wait for the answer.
    if (event.type === 'run_start' || event.type === 'session_end') open.clear();
  }
  return [...open.values()];
}

/** Whether it was ever asked. */
export function wasAsked(records: readonly JsonObject[], requestId: string): boolean {
  return eventsOf(records).some((event) => event.type === 'permission_request' && event.requestId === requestId);
}

function askedFirst({ messages }: Past): string {
  const asked = messages.find(({ role }) => role === 'user');
  return asked?.role === 'user' && asked.content[0]?.type === 'text' ? asked.content[0].text : '';
}

// Our own records, each under its seal: they are what they were when they were written.
function eventsOf(records: readonly JsonObject[]): readonly Recorded[] {
  return records as unknown as readonly Recorded[];
}
