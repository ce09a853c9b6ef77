// What a record of a journal says, in a few words for a person.

import type { Recorded } from '@drover/protocol/events';
import type { Message } from '@drover/protocol/messages';
import { count, dollars, duration, tokens } from '../../views/text/figures.ts';

const COMMIT_CHARS = 8;

type Partial = { readonly type: 'partial'; readonly kind: string; readonly text: string };

/** Empty for types that say all there is to say, and for those that are not known. */
export function gistOf(record: Recorded | Partial): string {
  switch (record.type) {
    case 'partial':
      return `${count(record.text.length)} characters of ${record.kind} so far noted`;
    case 'run_start':
      return `${record.resumed ? 'goes on with' : 'begins'}: ${record.goal}`;
    case 'plan_ready':
      return `plan ${record.round}: ${record.tasks.map(({ id }) => id).join(', ')}`;
    case 'task_start':
      return `from ${short(record.base)} in ${record.workspace}`;
    case 'task_end':
      return `${endingWords(record.status, record.reason ?? record.summary)}${record.again ? '; it is tried again' : ''}`;
    case 'merge_start':
      return `${short(record.commit)} onto ${short(record.onto)}`;
    case 'merge_end':
      return `${endingWords(record.outcome, record.reason)}${record.again ? '; it is tried again' : ''}`;
    case 'gate_start':
      return `${record.command}${tested(record.tasks)}`;
    case 'gate_end':
      return `${record.command} ${record.passed ? 'passes' : 'fails'}${record.flaky ? ' at the second try' : ''}${tested(record.tasks)}`;
    case 'throttle_wait':
      return `${duration(record.waitMs)}: ${record.reason}`;
    case 'budget':
      return [...tokens(record.usage), ...costWords(record.cost)].join(', ');
    case 'run_end':
      return [
        endingWords(record.outcome, record.reason),
        ...record.tasks.map(({ task, status }) => `${task} ${status}`),
        ...costWords(record.cost),
      ].join(', ');
    case 'session_start':
      return `${record.model} in ${record.cwd}`;
    case 'session_end':
      return [endingWords(record.outcome, record.reason), ...tokens(record.usage), ...costWords(record.cost)].join(
        ', ',
      );
    case 'message_start':
      return record.role;
    case 'message_end':
      return `${record.message.role}: ${messageGist(record.message)}${record.kept === false ? ' (not kept)' : ''}`;
    case 'text_end':
    case 'thinking_end':
      return record.text;
    case 'text_delta':
    case 'thinking_delta':
    case 'toolcall_delta':
    case 'tool_execution_delta':
      return record.delta;
    case 'toolcall_start':
      return record.name;
    case 'toolcall_end':
      return `${record.call.name} ${JSON.stringify(record.call.args)}`;
    case 'tool_execution_start':
      return record.summary;
    case 'tool_execution_end':
      return `${record.summary} — ${record.isError ? 'failed: ' : ''}${record.outputSummary}`;
    case 'permission_request':
      return `${record.summary} — ${record.why}`;
    case 'permission_decision':
      return `${record.summary} — ${record.allowed ? 'allowed' : 'not allowed'} by ${record.by}`;
    case 'awaiting_tool_execution':
      return record.calls.map(({ summary }) => summary).join(', ');
    case 'usage':
      return [...tokens(record.usage), ...costWords(record.requestCost)].join(', ');
    case 'retry':
      return `${record.reason}; again in ${duration(record.delayMs)}`;
    case 'attempt_discarded':
      return record.reason;
    case 'compaction_start':
      return `${count(record.tokens)} tokens`;
    case 'compaction_end':
      return `${count(record.tokens)} tokens${record.ok ? '' : ', failed'}`;
    case 'warning':
      return record.message;
    case 'incomplete':
    case 'error':
      return record.reason;
    case 'task_ready':
    case 'text_start':
    case 'thinking_start':
    case 'heartbeat':
    case 'done':
    case 'cancelled':
      return '';
  }
  return '';
}

/** The tasks whose work a gate tests; a session has none. */
function tested(tasks: readonly string[]): string {
  return tasks.length === 0 ? '' : `, with ${tasks.join(', ')}`;
}

function short(commit: string): string {
  return commit.slice(0, COMMIT_CHARS);
}

function endingWords(outcome: string, reason: string | undefined): string {
  return reason === undefined ? outcome : `${outcome}: ${reason}`;
}

function costWords(cost: number | undefined): readonly string[] {
  return cost === undefined ? [] : [dollars(cost)];
}

function messageGist(message: Message): string {
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
