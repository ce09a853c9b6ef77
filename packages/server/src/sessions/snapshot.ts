// Session snapshots: the state of a session as its journal tells it.

import { readFile } from 'node:fs/promises';
import type { OpenQuestion, PartialBlock, SessionSnapshot } from '@drover/client/wire';
import type { Recorded } from '@drover/protocol/events';
import { DroverError } from '@drover/core/errors';
import { FORMAT_VERSION, readJournalContents } from '@drover/core/journal/file/format';
import { PastFold, type Past } from '@drover/core/journal/history';
import { sessionTitle } from '@drover/core/journal/sessions';
import { isJsonObject, type JsonObject } from '@drover/protocol/json';
import type { Progress } from '../streams/feed.ts';

/** The readable records of a journal, and the error that stopped reading. */
export type Kept = { readonly records: readonly JsonObject[]; readonly problem: DroverError | undefined };

export async function readSessionSnapshotRecords(path: string): Promise<Kept> {
  const { records, version, damage } = readJournalContents(await readFile(path));
  if (version > FORMAT_VERSION)
    return { records: [], problem: new DroverError({ kind: 'journal.newer', path, version }) };
  const problem = damage && new DroverError({ kind: 'journal.damaged', path, ...damage });
  return { records, problem };
}

/** The state of a session that its journal does not hold. */
export type Standing = {
  /** True if this or another process runs its last turn. */
  readonly isAtWork: boolean;
  /** Events sent so far, if this process runs the turn. */
  readonly progress: Progress | undefined;
  /** Maximum number of last messages; undefined for all. */
  readonly messagesMax: number | undefined;
};

/** Folds a session's journal record by record, so that a long one is read once. */
export class SessionView {
  readonly #fold = new PastFold();
  readonly #partial = new PartialAnswer();
  readonly #questions = new OpenQuestions();
  #seq = 0;
  #isQuiet = true;
  #asked: string | undefined;

  get seq(): number {
    return this.#seq;
  }

  /** True if the last turn or request has ended and nothing resumes by itself. */
  get isQuiet(): boolean {
    return this.#isQuiet;
  }

  take(event: Recorded): void {
    this.#seq = Math.max(this.#seq, event.seq ?? 0);
    this.#fold.take(event);
    this.#partial.take(event);
    this.#questions.take(event);
    if ((event.type as string) !== 'partial')
      this.#isQuiet = event.type === 'session_end' || event.type === 'session_start';
    if (event.type !== 'message_end' || event.message.role !== 'user') return;
    const [first] = event.message.content;
    this.#asked ??= first?.type === 'text' ? first.text : '';
  }

  snapshot(id: string, { isAtWork, progress, messagesMax }: Standing): SessionSnapshot | undefined {
    const { past } = this.#fold;
    if (past === undefined) return undefined;
    const status = statusOfServedSession(past, isAtWork);
    const partial = status === 'running' ? this.#partial.blocks(progress) : [];
    const { messages, cost } = past;
    return {
      id,
      seq: Math.max(this.#seq, progress?.seq ?? 0),
      status,
      ...(past.ending !== undefined && status === 'idle' && { ending: past.ending }),
      model: past.model,
      cwd: past.cwd,
      title: sessionTitle(this.#asked ?? ''),
      messages: messages.slice(Math.max(0, messages.length - (messagesMax ?? messages.length))),
      ...(partial.length > 0 && { partial }),
      tools: past.remoteTools.map(({ name, description, schema, timeoutMs }) => ({
        name,
        description,
        schema: isJsonObject(schema) ? schema : {},
        ...(timeoutMs !== undefined && { timeoutMs }),
      })),
      pending: past.open?.pending ?? [],
      questions: status === 'running' ? this.#questions.list : [],
      usage: past.usage,
      ...(cost !== undefined && { cost }),
    };
  }
}

/**
 * The blocks of the answer in progress. Blocks that have ended come from the journal. The text of an open one comes
 * from the deltas told here; where another process answers, from the notes that it makes every second.
 */
class PartialAnswer {
  readonly #blocks = new Map<number, PartialBlock>();

  take(event: Recorded): void {
    if ((event.type as string) === 'partial') return this.#note(event as unknown as Note);
    switch (event.type) {
      case 'message_start':
      case 'message_end':
      case 'attempt_discarded':
        this.#blocks.clear();
        return;
      case 'text_end':
      case 'thinking_end': {
        const { part, text, type } = event;
        this.#blocks.set(part, { part, type: type === 'text_end' ? 'text' : 'thinking', text });
      }
    }
  }

  blocks(progress: Progress | undefined): readonly PartialBlock[] {
    const blocks = new Map(this.#blocks);
    for (const block of progress?.open ?? []) blocks.set(block.part, block);
    return [...blocks.values()].toSorted((a, b) => a.part - b.part);
  }

  #note({ part, kind: type, from, text }: Note): void {
    const before = this.#blocks.get(part)?.text ?? '';
    this.#blocks.set(part, { part, type, text: before.slice(0, from) + text });
  }
}

type Note = {
  readonly part: number;
  readonly kind: PartialBlock['type'];
  readonly from: number;
  readonly text: string;
};

function statusOfServedSession({ open }: Past, isAtWork: boolean): SessionSnapshot['status'] {
  if ((open?.pending.length ?? 0) > 0) return 'awaiting_tool_execution';
  return isAtWork ? 'running' : 'idle';
}

export function lastSeqOfServedSession(records: readonly JsonObject[]): number {
  return eventsOfServedSession(records).reduce((last, { seq }) => Math.max(last, seq ?? 0), 0);
}

/** Questions that were asked and are not decided yet. */
class OpenQuestions {
  readonly #open = new Map<string, OpenQuestion>();

  get list(): readonly OpenQuestion[] {
    return [...this.#open.values()];
  }

  take(event: Recorded): void {
    if (event.type === 'permission_request') this.#open.set(event.requestId, event);
    if (event.type === 'permission_decision') this.#open.delete(event.requestId);
    // A process that crashed no longer waits for the answer.
    if (event.type === 'run_start' || event.type === 'session_end') this.#open.clear();
  }
}

export function openQuestionsOfServedSession(records: readonly JsonObject[]): readonly OpenQuestion[] {
  const questions = new OpenQuestions();
  for (const event of eventsOfServedSession(records)) questions.take(event);
  return questions.list;
}

/** True if the journal holds this permission request. */
export function wasAskedInServedSession(records: readonly JsonObject[], requestId: string): boolean {
  return eventsOfServedSession(records).some(
    (event) => event.type === 'permission_request' && event.requestId === requestId,
  );
}

// Drover wrote and checksummed these records, so the cast is safe.
function eventsOfServedSession(records: readonly JsonObject[]): readonly Recorded[] {
  return records as unknown as readonly Recorded[];
}
