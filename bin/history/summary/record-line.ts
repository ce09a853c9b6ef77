// A record of a journal in one line for the user: time, agent, step, type, and a summary.

import type { Recorded } from '@drover/protocol/events';
import type { Json, JsonObject } from '@drover/protocol/json';
import type { Style } from '../../views/text/style.ts';
import { clockText } from '../../views/text/figures.ts';
import { textCell, cutText, textOnOneLine, widthOfText } from '../../views/text/terminal-text.ts';
import { summarizeRecord } from './record-gist.ts';

const TYPE_COLUMNS = 'awaiting_tool_execution'.length;
const PLACE_COLUMNS = 5;
const TIME_CHARS = '00:00:00'.length;
const WHO_COLUMNS_MAX = 20;
const WHO_COLUMNS_NARROW = 10;
// Below this width, optional parts are left out: milliseconds, steps, aligned columns.
const COLUMNS_ENOUGH = 72;

export type Line = {
  readonly columns: number;
  readonly style: Style;
  /** Width of the column of task names; undefined for a session, which has no tasks. */
  readonly names?: number;
};

/** `gists` is false if a newer drover wrote the record, whose meaning is then unknown. */
export function formatRecordLine(record: JsonObject, gists: 'gists' | 'types only', line: Line): string {
  const { columns, style, names } = line;
  const head = names === undefined ? sessionRecordHead(record) : runRecordHead(record, names, columns);
  const name = textOnOneLine(plainRecordValue(record['type']), TYPE_COLUMNS);
  const gist = gists === 'gists' ? summarizeRecord(record as unknown as Recorded) : '';
  // Only the gist is truncated, because it can be long.
  const typeColumns = names !== undefined && columns < COLUMNS_ENOUGH ? name.length : TYPE_COLUMNS;
  const room = Math.max(columns - widthOfText(head) - typeColumns - 2, 1);
  const said = gist === '' ? name : `${name.padEnd(typeColumns)}  ${textOnOneLine(gist, room)}`;
  return `${style('dim', head)}${cutText(said, Math.max(columns - widthOfText(head), 1))}\n`;
}

function sessionRecordHead(record: JsonObject): string {
  return `${clockText(plainRecordValue(record['at']))}  ${stepOfRecord(record).padEnd(PLACE_COLUMNS)} `;
}

function runRecordHead(record: JsonObject, names: number, columns: number): string {
  const isNarrow = columns < COLUMNS_ENOUGH;
  const time = clockText(plainRecordValue(record['at']));
  const width = Math.min(names, isNarrow ? WHO_COLUMNS_NARROW : WHO_COLUMNS_MAX);
  const who = textCell(agentOfRecord(record), width);
  const padding = ' '.repeat(Math.max(0, width - widthOfText(who)));
  if (isNarrow) return `${time.slice(0, TIME_CHARS)} ${who}${padding} `;
  return `${time}  ${who}${padding}  ${stepOfRecord(record).padEnd(PLACE_COLUMNS)} `;
}

/** The subject: a worker with its task, the coordinator, or the run itself. */
export function agentOfRecord({ worker, task, attempt }: JsonObject): string {
  if (task === undefined) return worker === 0 ? 'coordinator' : 'run';
  const tries = typeof attempt === 'number' && attempt > 1 ? `/${attempt}` : '';
  return `${worker === undefined ? '' : `${plainRecordValue(worker)} `}${plainRecordValue(task)}${tries}`;
}

function stepOfRecord({ turn, step }: JsonObject): string {
  return turn === undefined ? '' : `${plainRecordValue(turn)}.${step === undefined ? 0 : plainRecordValue(step)}`;
}

function plainRecordValue(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
