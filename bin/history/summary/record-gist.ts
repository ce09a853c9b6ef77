// A record of a journal in a few words, for the user.

import { fallbackEventWords, movedEventWords, placementEventWords, type Recorded } from '@drover/protocol/events';
import type { Message } from '@drover/protocol/messages';
import { countText, dollarsText, durationText, tokensText } from '../../views/text/figures.ts';

const COMMIT_CHARS = 8;

type Partial = { readonly type: 'partial'; readonly kind: string; readonly text: string };

type Known = Recorded | Partial;

/** Record types that are missing here need no further words. */
const GISTS: { readonly [Type in Known['type']]?: (record: Extract<Known, { readonly type: Type }>) => string } = {
  partial: (record) => `${countText(record.text.length)} characters of ${record.kind} so far noted`,
  run_start: (record) => `${record.resumed ? 'goes on with' : 'begins'}: ${record.goal}`,
  plan_ready: (record) => `plan ${record.round}: ${record.tasks.map(({ id }) => id).join(', ')}`,
  plan_proposed: (record) => `waits for approval: ${record.tasks.map(({ id }) => id).join(', ')}`,
  plan_comment: (record) => `the user comments on the plan: ${record.comment}`,
  tasks_reopened: (record) => `the user retries ${record.tasks.map(({ id }) => id).join(', ')}`,
  delivered: ({ delivered: { deliver, branch } }) =>
    `delivered as ${deliver}${branch === undefined ? '' : `: ${branch}`}`,
  run_pause: ({ paused }) => (paused ? 'the user paused the run' : 'the user let the run go on'),
  task_message: ({ text }) => `the user writes: ${text}`,
  task_message_delivered: () => 'the worker has the message of the user',
  task_start: (record) =>
    `from ${shortCommit(record.base)} in ${record.workspace}${record.host === undefined ? '' : ` on ${record.host}`}`,
  placement: placementEventWords,
  task_end: (record) =>
    `${recordEndingWords(record.status, record.reason ?? record.summary)}${record.again ? '; it is tried again' : ''}`,
  attempt_moved: movedEventWords,
  merge_start: (record) => `${shortCommit(record.commit)} onto ${shortCommit(record.onto)}`,
  merge_end: (record) =>
    `${recordEndingWords(record.outcome, record.reason)}${record.again ? '; it is tried again' : ''}`,
  gate_start: (record) => `${record.command}${testedGist(record)}`,
  gate_end: (record) =>
    `${record.command} ${record.passed ? 'passes' : 'fails'}${record.flaky ? ' at the second try' : ''}${testedGist(record)}`,
  throttle_wait: (record) => `${durationText(record.waitMs)}: ${record.reason}`,
  budget: (record) => [...tokensText(record.usage), ...recordCostWords(record.cost)].join(', '),
  run_end: (record) =>
    [
      recordEndingWords(record.outcome, record.reason),
      ...record.tasks.map(({ task, status }) => `${task} ${status}`),
      ...recordCostWords(record.cost),
    ].join(', '),
  session_start: (record) => `${record.model} in ${record.cwd}`,
  session_end: (record) =>
    [
      recordEndingWords(record.outcome, record.reason),
      ...tokensText(record.usage),
      ...recordCostWords(record.cost),
    ].join(', '),
  message_start: (record) => record.role,
  message_end: (record) =>
    `${record.message.role}: ${summarizeMessageRecord(record.message)}${record.kept === false ? ' (not kept)' : ''}`,
  text_end: ({ text }) => text,
  thinking_end: ({ text }) => text,
  text_delta: ({ delta }) => delta,
  thinking_delta: ({ delta }) => delta,
  toolcall_delta: ({ delta }) => delta,
  tool_execution_delta: ({ delta }) => delta,
  toolcall_start: (record) => record.name,
  toolcall_end: (record) => `${record.call.name} ${JSON.stringify(record.call.args)}`,
  tool_execution_start: (record) => record.summary,
  tool_execution_end: (record) => `${record.summary} — ${record.isError ? 'failed: ' : ''}${record.outputSummary}`,
  permission_request: (record) => `${record.summary} — ${record.why}`,
  permission_decision: (record) => `${record.summary} — ${record.allowed ? 'allowed' : 'not allowed'} by ${record.by}`,
  awaiting_tool_execution: (record) => record.calls.map(({ summary }) => summary).join(', '),
  usage: (record) => [...tokensText(record.usage), ...recordCostWords(record.requestCost)].join(', '),
  retry: (record) => `${record.reason}; again in ${durationText(record.delayMs)}`,
  model_fallback: fallbackEventWords,
  attempt_discarded: ({ reason }) => reason,
  compaction_start: (record) => `${countText(record.tokens)} tokens`,
  compaction_end: (record) => `${countText(record.tokens)} tokens${record.ok ? '' : ', failed'}`,
  warning: (record) => record.message,
  incomplete: ({ reason }) => reason,
  error: ({ reason }) => reason,
};

/** Empty for records whose type says everything, and for unknown ones. */
export function summarizeRecord(record: Known): string {
  // Later versions of drover may write other types.
  if (!Object.hasOwn(GISTS, record.type)) return '';
  return (GISTS[record.type] as (record: Known) => string)(record);
}

/** The tasks whose work a gate tests; a session has none. */
function testedGist({ tasks, base }: { readonly tasks: readonly string[]; readonly base?: true }): string {
  if (base) return ', on the base commit';
  return tasks.length === 0 ? '' : `, with ${tasks.join(', ')}`;
}

function shortCommit(commit: string): string {
  return commit.slice(0, COMMIT_CHARS);
}

function recordEndingWords(outcome: string, reason: string | undefined): string {
  return reason === undefined ? outcome : `${outcome}: ${reason}`;
}

function recordCostWords(cost: number | undefined): readonly string[] {
  return cost === undefined ? [] : [dollarsText(cost)];
}

function summarizeMessageRecord(message: Message): string {
  switch (message.role) {
    case 'user':
      return message.content.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join(' ');
    case 'assistant':
      return message.content
        .map((part) => (part.type === 'tool_call' ? `[${part.name}]` : part.type === 'text' ? part.text : '[thinking]'))
        .join(' ');
    case 'tool':
      return message.results.map(({ name, isError }) => `${name} ${isError ? 'failed' : 'ok'}`).join(', ');
  }
}
