// An agent, and the state of its current turn.

import type { Bench, Denial, OpenCalls } from './calls/calls.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Event, Place } from '@drover/protocol/events';
import { describe } from '@drover/protocol/failures';
import type { Admission } from '../model/spending/admission.ts';
import type { AssistantMessage, Message, Usage } from '@drover/protocol/messages';
import type { ModelRoutes } from '../model/fallback.ts';
import { isBlankForModel } from '../model/request.ts';
import type { RetryPolicy } from '../model/retry.ts';
import type { Sampling } from '@drover/protocol/model';
import { failedTurnOutcome, type TurnOutcome } from '@drover/protocol/outcomes';
import { DroverError } from '../errors.ts';
import type { Answer, Ask, Asking, AskNotes } from './ask.ts';
import type { Spent } from '../model/spending/spent.ts';
import type { Limits } from '@drover/protocol/limits';
import type { RefusedCalls } from './calls/refused-calls.ts';
import type { Repeats } from './calls/repeats.ts';
import type { Inbox } from '../session/inbox.ts';
import type { Toolset } from '../tools/served/toolset.ts';
import type { SessionOptions } from '../session/session-options.ts';

export type Agent = {
  readonly conversation: Conversation;
  /** The models to ask; requests go to the current one. */
  readonly routes: ModelRoutes;
  readonly toolset: Toolset;
  readonly bench: Omit<Bench, 'emit' | 'settled'>;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly admission: Admission;
  readonly cacheKey: string;
  readonly sampling: Sampling | undefined;
  /** Messages that the user sends while a turn runs. */
  readonly inbox: Inbox;
  readonly emit: (event: Event, place: Place) => void;
  /** Resolves when every event emitted so far is durable. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
  /**
   * Returns the cost of the request in US dollars; undefined if the price is unknown.
   * `estimate` is drover's token count of the prompt; omit it for requests outside the conversation.
   */
  readonly spend: (usage: Usage, estimate?: number) => number | undefined;
  /** Adds the usage of a request without emitting an event. */
  readonly book: (usage: Usage) => void;
  readonly total: () => Spent;
  readonly ask: Ask;
  readonly notes: AskNotes;
};

/** Maximum number of requests for one answer, over all retries, discards, reminders and compactions. */
export const ATTEMPTS_MAX = 16;

/** State of one turn. A suspended turn keeps it until it is resumed. */
export class Turn {
  readonly number: number;
  readonly messages: Message[] = []; // messages of this turn
  readonly denials: Denial[] = [];
  refused: RefusedCalls | undefined; // the last refused calls; undefined once a later call was run
  steps = 0;
  outputTokens = 0;
  answers = 0; // answers added to the history
  readonly patience = { left: ATTEMPTS_MAX }; // attempts left for the current answer
  reminder: string | undefined; // for the next request only
  isNudged = false;
  textCalls = 0;
  pauses = 0;
  unknownInARow = 0;
  repeats: Repeats | undefined; // set for a worker
  compactionsInARow = 0;
  open: OpenCalls | undefined;

  constructor(number: number) {
    this.number = number;
  }
}

export function emitTurnEvent(agent: Agent, turn: Turn, event: Event): void {
  agent.emit(event, { worker: agent.bench.worker, turn: turn.number, step: turn.steps });
}

/** The parts of a request that identify its agent. */
export function requestPartsOfTurn(
  { conversation, routes, limits, notes, total }: Agent,
  { number, steps }: Turn,
  estimate?: number,
): Pick<Asking, 'place' | 'tally' | 'notes' | 'idleMs'> {
  const { ratio } = conversation;
  return {
    place: { turn: number, step: steps },
    tally: {
      total: total(),
      window: routes.current.contextTokens,
      ...(estimate !== undefined && { estimate }),
      ...(ratio !== undefined && { ratio }),
    },
    notes,
    idleMs: limits.idleMs,
  };
}

export function addTurnMessage(agent: Agent, turn: Turn, message: Exclude<Message, AssistantMessage>): void {
  emitTurnEvent(agent, turn, { type: 'message_start', role: message.role });
  appendToTurn(agent, turn, message);
  emitTurnEvent(agent, turn, { type: 'message_end', message });
}

/** Adds the messages that the user sent meanwhile. Returns false if there are none. */
export function takeTurnSteering(agent: Agent, turn: Turn): boolean {
  const delivered = agent.inbox.deliver();
  for (const { content, onDelivered } of delivered) {
    addTurnMessage(agent, turn, { role: 'user', content });
    onDelivered?.();
  }
  return delivered.length > 0;
}

/** Adds an answer. Its `message_start` was emitted when the answer began to arrive. */
export function addTurnAnswer(agent: Agent, turn: Turn, answer: Omit<Answer, 'notes'>): void {
  appendToTurn(agent, turn, answer.message);
  emitTurnEvent(agent, turn, endOfTurnAnswer(answer));
}

export function endOfTurnAnswer({
  message,
  cost,
}: Omit<Answer, 'notes'>): Extract<Event, { readonly type: 'message_end' }> {
  return { type: 'message_end', message, ...(cost !== undefined && { cost }) };
}

function appendToTurn(agent: Agent, turn: Turn, message: Message): void {
  agent.conversation.append(message);
  turn.messages.push(message);
}

/** Returns the text of an answer without thinking and calls; undefined if it is blank. */
export function textOfTurnAnswer({ content }: AssistantMessage): string | undefined {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  return isBlankForModel(text) ? undefined : text;
}

/** Adds a message from before the session to the conversation and the journal, but to no turn. */
export function addTurnOpening(agent: Agent, turn: Turn, message: Message): void {
  agent.conversation.append(message);
  emitTurnEvent(agent, turn, { type: 'message_end', message });
}

/** Returns the event that ends a turn; undefined while the turn is suspended. */
export function turnEndingEvent(outcome: TurnOutcome, messages: readonly Message[]): Event | undefined {
  switch (outcome.status) {
    case 'done': {
      const message = messages.findLast((each) => each.role === 'assistant');
      return message && { type: 'done', message };
    }
    case 'incomplete':
    case 'error':
      return { type: outcome.status, failure: outcome.failure, reason: describe(outcome.failure) };
    case 'cancelled':
      return { type: 'cancelled' };
    case 'suspended':
      return undefined; // awaiting_tool_execution was emitted before
  }
}

/** Gates that the caller runs after a successful turn, before its ending is emitted. */
export type Checking = {
  readonly check: SessionOptions['check'] | undefined;
  readonly emit: Parameters<NonNullable<SessionOptions['check']>>[0];
};

/** True if the agent is done, and did not stop for lack of permission. */
export function isTurnWhole({ status }: TurnOutcome, { refused }: Turn): boolean {
  return status === 'done' && (refused?.calls.length ?? 0) === 0;
}

/** Returns `done`, or `incomplete` with the failure of the check. */
export async function checkTurn({ check, emit }: Checking, signal: AbortSignal): Promise<TurnOutcome> {
  try {
    const failure = await check?.(emit, signal);
    return failure === undefined ? { status: 'done' } : failedTurnOutcome(failure, true);
  } catch (error) {
    if (error instanceof DroverError) return failedTurnOutcome(error.failure, true);
    throw error;
  }
}
