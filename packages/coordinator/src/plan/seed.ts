// The first messages of a worker: the coordinator's conversation or a part of it, then the worker's task.
//
// Guarantee: all workers of a plan begin with the same bytes: tools, system prompt, messages. With `full` these are
// the bytes of the coordinator's last request. Everything that differs (number, task, workspace, earlier failures) is
// in one message after them, so the provider's cache hits.

import { createHash } from 'node:crypto';
import type { Snapshot } from '@drover/core/conversation/conversation';
import { isJsonObject } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import type { PlannedTask, SeedSummary, Seeding } from '@drover/protocol/plan';
import { SUBMIT_PLAN } from '@drover/core/tools/submit-plan';

const ACCEPTED =
  'The plan is accepted, and is being carried out now. From here on you are no longer the coordinator but one of its workers, in a copy of the repository of your own. Which one, and what your task is, follows. Do only that: the other tasks are done by others, at the same time. You cannot submit plans.';

export type Seed = {
  readonly messages: readonly Message[];
  readonly summary: SeedSummary;
  /** Prompts that the conversation already contains, because the plan is part of it. */
  readonly prompts: ReadonlySet<string>;
  /** The prefix of the coordinator's last request, if the worker's request must share it. */
  readonly shared?: string;
};

export type Planned = { readonly goal: string; readonly tasks: readonly PlannedTask[] };

/** `snapshot` is undefined without a coordinator: the plan came from a file, and only the goal is known. */
export function makeWorkerSeed(wanted: Seeding, snapshot: Snapshot | undefined, planned: Planned): Seed {
  const seeding = wanted === 'full' && snapshot === undefined ? 'brief' : wanted;
  const messages = seedMessages(seeding, snapshot, planned);
  const text = beginningOfSeed(snapshot?.system ?? '', messages);
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const summary = { seeding, messages: messages.length, tokens: Math.ceil(text.length / 4), digest };
  if (seeding !== 'full' || snapshot === undefined) return { messages, summary, prompts: new Set() };
  const prompts = seedPromptsIn(snapshot.messages);
  return { messages, summary, prompts, shared: beginningOfSeed(snapshot.system, snapshot.messages.slice(0, -1)) };
}

function seedMessages(seeding: Seeding, snapshot: Snapshot | undefined, planned: Planned): readonly Message[] {
  switch (seeding) {
    case 'full':
      return [...(snapshot?.messages ?? []), closePlanCallsInSeed(snapshot?.messages ?? [])];
    case 'brief':
      return [seedBrief(planned)];
    case 'none':
      return [];
  }
}

function seedPromptsIn(messages: readonly Message[]): ReadonlySet<string> {
  const last = messages.at(-1);
  const calls = last?.role === 'assistant' ? last.content.filter((part) => part.type === 'tool_call') : [];
  const tasks = calls.flatMap(({ args }) => (isJsonObject(args) && Array.isArray(args['tasks']) ? args['tasks'] : []));
  return new Set(tasks.map((task) => (isJsonObject(task) ? task['prompt'] : undefined)).filter(isSeedText));
}

function isSeedText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Results for the calls of the coordinator's last answer, which stay open while the plan is executed. */
function closePlanCallsInSeed(messages: readonly Message[]): Message {
  const last = messages.at(-1);
  const calls = last?.role === 'assistant' ? last.content.filter((part) => part.type === 'tool_call') : [];
  return {
    role: 'tool',
    results: calls.map(({ id, name }) => ({
      id,
      name,
      output: name === SUBMIT_PLAN ? ACCEPTED : 'What came of this is for the coordinator.',
      isError: false,
    })),
  };
}

function seedBrief({ goal, tasks }: Planned): Message {
  const list = tasks.map(({ id, title, dependsOn }) => {
    const after = dependsOn.length === 0 ? '' : ` (after ${dependsOn.join(', ')})`;
    return `- ${id}: ${title}${after}`;
  });
  const text = `The goal: ${goal}\n\nIt is reached by these tasks, each done by a worker in a copy of the repository of its own:\n${list.join('\n')}\n\nYou are one of these workers. Which one, and what your task is, follows. Do only that. You cannot submit plans.`;
  return { role: 'user', content: [{ type: 'text', text }] };
}

export type Assignment = {
  readonly worker: number;
  readonly task: PlannedTask;
  readonly attempt: number;
  readonly workspace: string;
  /** The prompt is part of the conversation already. */
  readonly isPromptRead: boolean;
  /** The reason for another attempt. */
  readonly before?: string;
};

/** The first message that is the worker's own. */
export function seedAssignment({ worker, task, attempt, workspace, isPromptRead, before }: Assignment): string {
  const { id, title, prompt, mode, files } = task;
  return [
    `You are worker ${worker}. Your task is ${id}: ${title}`,
    ...(isPromptRead ? [] : [prompt]),
    `Your workspace is ${workspace}; paths are relative to it.`,
    mode === 'read'
      ? 'Look and report: what you change is not kept. Your answer is the result.'
      : 'Leave your changes in the files: they are committed for you. Do not commit, branch or push.',
    ...(files.length > 0 && mode === 'write' ? [`Keep to these files if you can: ${files.join(', ')}`] : []),
    ...(before === undefined ? [] : [`This is attempt ${attempt}. ${before}`]),
    'When you are done, call submit_result.',
  ].join('\n\n');
}

/** System prompt and messages as one text, to compare prefixes. */
export function beginningOfSeed(system: string, messages: readonly Message[]): string {
  return [system, ...messages].map((part) => JSON.stringify(part)).join('\n');
}

/** The offset at which a worker's prefix differs from the shared one; undefined if it does not. */
export function firstSeedDifference(shared: string, own: string): number | undefined {
  if (own.startsWith(shared)) return undefined;
  let at = 0;
  while (at < shared.length && shared[at] === own[at]) at += 1;
  return at;
}
