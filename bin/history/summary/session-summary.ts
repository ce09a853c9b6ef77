// A session in one object: the head of `drover show`, and all of `drover show --json`.

import { NO_USAGE } from '@drover/core/model/spending/usage';
import { type DeniedCall, DeniedCalls } from '@drover/core/permission/denied-calls';
import type { Recorded } from '@drover/protocol/events';
import type { Past } from '@drover/core/journal/history';
import { listSessions } from '@drover/core/journal/sessions';
import type { Usage } from '@drover/protocol/messages';
import { deniedCallLines } from '../../views/text/call-result.ts';
import { agoText, countText, dollarsText, momentText, tokenFiguresText, tokensText } from '../../views/text/figures.ts';
import { formatHistoryFacts, historyHeading, type Paper } from '../facts.ts';
import { listStoredEvents } from '../journal.ts';
import type { KeptSession } from '../session.ts';
import { looksOf, type State } from '../state.ts';

export type SessionSummary = {
  readonly kind: 'session';
  readonly id: string;
  readonly title: string;
  readonly state: State;
  /** The reason of its ending, or the question that it waits for. */
  readonly reason?: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly model: string;
  readonly cwd: string;
  readonly turns: number;
  readonly messages: number;
  readonly calls: number;
  readonly denied: readonly DeniedCall[]; // denied calls
  readonly usage: Usage;
  readonly cost?: number; // US dollars; absent if the price is unknown
  readonly tokens?: NonNullable<Past['tokens']>; // tokens of the last prompt
  /** Runs that a chat has started in it. `cost` and `usage` of the session leave them out. */
  readonly runs?: RunsOfSession;
};

type RunsOfSession = { readonly count: number; readonly cost?: number };

export function summarizeSession(kept: KeptSession, runs?: RunsOfSession): SessionSummary | undefined {
  const { id, home, records, past, live, problem } = kept;
  const row = listSessions(home).find((each) => each.id === id);
  if (row === undefined) return undefined;
  const events = past === undefined ? [] : listStoredEvents({ records, live });
  const reason = problem ?? sessionEndReason(events, past?.open?.pending ?? []);
  const { title, startedAt, updatedAt, model, cwd, turns } = row;
  return {
    kind: 'session',
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
    denied: listDeniedCalls(events),
    usage: past?.usage ?? NO_USAGE,
    ...(past?.cost !== undefined && { cost: past.cost }),
    ...(past?.tokens !== undefined && { tokens: past.tokens }),
    ...(runs !== undefined && { runs }),
  };
}

function listDeniedCalls(events: readonly Recorded[]): readonly DeniedCall[] {
  const denied = new DeniedCalls();
  for (const event of events) denied.take(event);
  return denied.list;
}

function sessionEndReason(
  events: readonly Recorded[],
  waiting: readonly { readonly summary: string }[],
): string | undefined {
  if (waiting.length > 0) return `it waits for ${waiting.map(({ summary }) => summary).join(', ')}`;
  // The last ending does not explain a turn that began after it.
  const ending = events.findLast(
    ({ type }) => type === 'message_start' || type === 'incomplete' || type === 'error' || type === 'done',
  );
  return ending?.type === 'incomplete' || ending?.type === 'error' ? ending.reason : undefined;
}

/** Damage of a journal is printed last, where the user sees it. */
function isSessionStateShown(state: State): boolean {
  return state === 'damaged' || state === 'newer';
}

function runsOfSessionText({ count, cost }: RunsOfSession): string {
  return [countText(count), ...(cost === undefined ? [] : [dollarsText(cost)])].join(', ');
}

/** For the user: the title, and one line for each known fact. */
export function formatSessionSummary(summary: SessionSummary, paper: Paper): string {
  const { id, title, state, reason, startedAt, updatedAt, model, cwd, turns, denied, usage, cost, runs } = summary;
  const looks = looksOf[state];
  const lines = formatHistoryFacts(
    [
      ['session', id],
      ['model', model],
      ['folder', cwd],
      ['begun', startedAt === '' ? '' : `${momentText(startedAt)}, last heard of ${agoText(updatedAt, Date.now())}`],
      ['state', `${looks.word}${reason === undefined || isSessionStateShown(state) ? '' : `: ${reason}`}`, looks],
      ['turns', countText(turns)],
      ['denied', deniedCallLines(denied).join('; ')],
      ['used', tokensText(usage).join(', ')],
      ['cost', cost === undefined ? '' : dollarsText(cost)],
      ['runs', runs === undefined ? '' : runsOfSessionText(runs)],
      ['prompt', summary.tokens === undefined ? '' : tokenFiguresText(summary.tokens).join(', ')],
    ],
    paper,
  );
  return historyHeading(title, paper) + lines;
}
