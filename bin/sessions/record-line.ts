// A record of a journal in one line, for a person: when, where in the work, what, and the gist of it.

import type { Recorded } from '@drover/core/events';
import type { Json, JsonObject } from '@drover/core/json';
import type { Message } from '@drover/core/model/protocol';
import { clock, count, dollars, duration, tokens } from '../views/figures.ts';
import type { Style } from '../views/style.ts';
import { cut, oneLine } from '../views/terminal-text.ts';

const TYPE_COLUMNS = 'awaiting_tool_execution'.length;
const PLACE_COLUMNS = 5;

export type Line = { readonly columns: number; readonly style: Style };

/** `gists` are left out where a newer drover wrote the record: what it means by it is not known. */
export function recordLine(record: JsonObject, gists: 'gists' | 'types only', { columns, style }: Line): string {
  const [at, turn, step, type] = ['at', 'turn', 'step', 'type'].map((key) => plain(record[key]));
  const time = clock(at ?? '');
  const place = turn === '' ? '' : `${turn}.${step === '' ? 0 : step}`;
  const head = `${time}  ${place.padEnd(PLACE_COLUMNS)} `;
  const name = oneLine(type ?? '', TYPE_COLUMNS);
  const gist = gists === 'gists' ? gistOf(record as unknown as Recorded) : '';
  // Only the gist is cut: it is what grows.
  const room = Math.max(columns - head.length - TYPE_COLUMNS - 2, 1);
  const said = gist === '' ? name : `${name.padEnd(TYPE_COLUMNS)}  ${oneLine(gist, room)}`;
  return `${style('dim', head)}${cut(said, Math.max(columns - head.length, 1))}\n`;
}

function plain(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

type Partial = { readonly type: 'partial'; readonly kind: string; readonly text: string };

/** Empty for types that say all there is to say, and for those that are not known. */
function gistOf(record: Recorded | Partial): string {
  switch (record.type) {
    case 'partial':
      return `${count(record.text.length)} characters of ${record.kind} so far noted`;
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
      return [...tokens(record.usage), ...costWords(record.cost)].join(', ');
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
    case 'text_start':
    case 'thinking_start':
    case 'heartbeat':
    case 'done':
    case 'cancelled':
      return '';
  }
  return '';
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
