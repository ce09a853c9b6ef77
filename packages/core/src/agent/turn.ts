// An agent, and one of its turns as far as it has come.

import type { Bench, Denial, OpenCalls } from './calls/calls.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Event, Place } from '@drover/protocol/events';
import { describe } from '@drover/protocol/failures';
import type { Admission } from '../model/spending/admission.ts';
import type { AssistantMessage, Message, ToolDefinition, Usage } from '@drover/protocol/messages';
import type { Provider } from '../model/provider.ts';
import { isBlank } from '../model/request.ts';
import type { RetryPolicy } from '../model/retry.ts';
import type { Sampling } from '@drover/protocol/model';
import type { TurnOutcome } from '@drover/protocol/outcomes';
import type { Answer } from './ask.ts';
import type { Limits } from '@drover/protocol/limits';
import type { RefusedCalls } from './calls/refused-calls.ts';

export type Agent = {
  readonly conversation: Conversation;
  readonly provider: Provider;
  readonly model: string;
  readonly contextTokens: number;
  readonly outputTokensMax: number;
  readonly definitions: readonly ToolDefinition[];
  readonly definitionChars: number;
  readonly definitionBytes: number;
  readonly bench: Omit<Bench, 'emit' | 'settled'>;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly admission: Admission;
  readonly cacheKey: string;
  readonly sampling: Sampling | undefined;
  readonly emit: (event: Event, place: Place) => void;
  /** Everything that was told so far is safe. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
  /** Returns the dollars of the request; undefined where the price is unknown. */
  /** `estimate`: our count of the prompt's tokens, where it was a prompt of the conversation. */
  readonly spend: (usage: Usage, estimate?: number) => number | undefined;
};

/** Over all recoveries of one answer: retries, discards, reminders and compactions each have limits of their own, and share this one. */
export const ATTEMPTS_MAX = 16;

/** It outlives a suspension. */
export class Turn {
  readonly number: number;
  readonly messages: Message[] = []; // the new ones
  readonly denials: Denial[] = [];
  refused: RefusedCalls | undefined; // the last ones, unless a later call was run
  steps = 0;
  outputTokens = 0;
  answers = 0; // answers kept: work that was done
  readonly patience = { left: ATTEMPTS_MAX }; // with the answer that is being asked for
  reminder: string | undefined; // for the next request only
  isNudged = false;
  textCalls = 0;
  pauses = 0;
  unknownInARow = 0;
  compactionsInARow = 0;
  open: OpenCalls | undefined;

  constructor(number: number) {
    this.number = number;
  }
}

export function emit(agent: Agent, turn: Turn, event: Event): void {
  agent.emit(event, { worker: agent.bench.worker, turn: turn.number, step: turn.steps });
}

export function addMessage(agent: Agent, turn: Turn, message: Exclude<Message, AssistantMessage>): void {
  emit(agent, turn, { type: 'message_start', role: message.role });
  append(agent, turn, message);
  emit(agent, turn, { type: 'message_end', message });
}

/** Its beginning was told when it began to arrive. */
export function addAnswer(agent: Agent, turn: Turn, answer: Omit<Answer, 'notes'>): void {
  append(agent, turn, answer.message);
  emit(agent, turn, endOfAnswer(answer));
}

export function endOfAnswer({
  message,
  cost,
}: Omit<Answer, 'notes'>): Extract<Event, { readonly type: 'message_end' }> {
  return { type: 'message_end', message, ...(cost !== undefined && { cost }) };
}

function append(agent: Agent, turn: Turn, message: Message): void {
  agent.conversation.append(message);
  turn.messages.push(message);
}

/** What an answer says, without its thinking and calls; undefined where it says nothing. */
export function textOf({ content }: AssistantMessage): string | undefined {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  return isBlank(text) ? undefined : text;
}

/** A message from before the session: in the conversation and the journal, and new in no turn. */
export function addOpening(agent: Agent, turn: Turn, message: Message): void {
  agent.conversation.append(message);
  emit(agent, turn, { type: 'message_end', message });
}

/** How a turn is told to have ended; undefined while it waits. */
export function endingOf(outcome: TurnOutcome, messages: readonly Message[]): Event | undefined {
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
      return undefined; // awaiting_tool_execution has told it
  }
}
