// What a session came to, in one object: the head of `drover show`, and all of `drover show --json`.

import type { Recorded } from '@drover/core/events';
import { listSessions } from '@drover/core/journal/sessions';
import type { Usage } from '@drover/core/model/protocol';
import { ago, count, dollars, moment, tokens } from '../views/figures.ts';
import type { Style } from '../views/style.ts';
import { clean } from '../views/terminal-text.ts';
import { wrapped } from '../views/word-wrap.ts';
import { eventsIn, type KeptSession } from './kept-session.ts';
import { looksOf, type State } from './state.ts';

const NAME_COLUMNS = 8;

export type SessionSummary = {
  readonly id: string;
  readonly title: string;
  readonly state: State;
  /** Why it ended as it did, or what it waits for. */
  readonly reason?: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly model: string;
  readonly cwd: string;
  readonly turns: number;
  readonly messages: number;
  readonly calls: number;
  readonly usage: Usage;
  readonly cost?: number; // US dollars; absent where the price is not known
};

const NOTHING: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export function summaryOf({ id, home, records, past, live, problem }: KeptSession): SessionSummary | undefined {
  const row = listSessions(home).find((each) => each.id === id);
  if (row === undefined) return undefined;
  const events = past === undefined ? [] : eventsIn(records);
  const reason = problem ?? reasonIn(events, past?.open?.pending ?? []);
  const cost = events.findLast((event) => event.type === 'usage')?.cost;
  const { title, startedAt, updatedAt, model, cwd, turns } = row;
  return {
    id,
    title,
    state: live ? 'live' : row.state,
    ...(reason !== undefined && { reason }),
    startedAt,
    updatedAt,
    model,
    cwd,
    turns,
    messages: past?.messages.length ?? 0,
    calls: events.filter(({ type }) => type === 'tool_execution_end').length,
    usage: past?.usage ?? NOTHING,
    ...(cost !== undefined && { cost }),
  };
}

function reasonIn(events: readonly Recorded[], waiting: readonly { readonly summary: string }[]): string | undefined {
  if (waiting.length > 0) return `it waits for ${waiting.map(({ summary }) => summary).join(', ')}`;
  // A turn that has begun after an ending is not explained by it.
  const ending = events.findLast(
    ({ type }) => type === 'message_start' || type === 'incomplete' || type === 'error' || type === 'done',
  );
  return ending?.type === 'incomplete' || ending?.type === 'error' ? ending.reason : undefined;
}

/** What is wrong with a journal is told last, where it can't be overlooked. */
function isTold(state: State): boolean {
  return state === 'damaged' || state === 'newer';
}

/** For a person: the title, and below it what is known, a line each. */
export function headOf(summary: SessionSummary, columns: number, style: Style): string {
  const { id, title, state, reason, startedAt, updatedAt, model, cwd, turns, usage, cost } = summary;
  const { sign, format, word } = looksOf[state];
  const now = Date.now();
  const facts: readonly (readonly [name: string, text: string])[] = [
    ['session', id],
    ['model', model],
    ['folder', cwd],
    ['begun', startedAt === '' ? '' : `${moment(startedAt)}, last heard of ${ago(updatedAt, now)}`],
    ['state', `${sign} ${word}${reason === undefined || isTold(state) ? '' : `: ${reason}`}`],
    ['turns', count(turns)],
    ['used', tokens(usage).join(', ')],
    ['cost', cost === undefined ? '' : dollars(cost)],
  ];
  const indent = ' '.repeat(2 + NAME_COLUMNS);
  const lines = facts
    .filter(([, text]) => text !== '')
    .map(([name, text]) => {
      const words = wrapped(clean(text).replaceAll('\n', ' '), columns - indent.length).replaceAll('\n', `\n${indent}`);
      const shown = name === 'state' ? words.replace(sign, () => style(format, sign)) : words;
      return `  ${style('dim', name.padEnd(NAME_COLUMNS))}${shown}\n`;
    });
  const heading = title === '' ? '' : `${style('bold', wrapped(clean(title), columns))}\n`;
  return heading + lines.join('');
}
