// Builds an agent from the options of its session.

import { type Event, EVENTS } from '@drover/protocol/events';
import type { Conversation } from '../conversation/conversation.ts';
import type { Instructions } from '../conversation/instructions.ts';
import { type Admission, admitByBudgetOnly } from '../model/spending/admission.ts';
import { Budget } from '../model/spending/budget.ts';
import type { Spent } from '../model/spending/spent.ts';
import { Toolset } from '../tools/served/toolset.ts';
import { askForAnswer, type AskNotes } from './ask.ts';
import { withoutIdleLimit, withTurnClocksHeld, type Watch } from './limits.ts';
import { toolNamedInCall } from './calls/calls.ts';
import { REMOTE_TIMEOUT_MS_DEFAULT } from './calls/remote-calls.ts';
import type { SessionOptions } from '../session/session-options.ts';
import type { Agent } from './turn.ts';

/** The parts of a session that its agent uses. */
export type Ties = Pick<Agent, 'conversation' | 'routes' | 'emit' | 'settled' | 'spend' | 'book' | 'inbox'> & {
  readonly conversation: Conversation;
  readonly instructions: Instructions;
  /** Usage and cost of the session so far. */
  readonly total: () => Spent;
  /** Resets the idle clock. */
  readonly progress: () => void;
  /** Stops the clocks of the turn until the returned function is called. */
  readonly hold: Watch['hold'];
};

export function makeAgent(options: SessionOptions, ties: Ties): Agent {
  const { tools, context, limits, retry, judge, question, worker, beforeCall } = options;
  const { conversation, routes, instructions, emit, settled, spend, book, total, progress } = ties;
  const budget = new Budget(options.cap, options.price);
  if (options.spentBefore !== undefined) budget.spend(options.spentBefore);
  const notes = { emit: (event: Event) => emit(event, { worker }), settled, total, price: () => routes.current.price };
  const prepare = () => tools.forEach((tool) => tool.prepare?.(context, 'possible'));
  const agentNotes: AskNotes = {
    // Once a request was sent, tools may prepare for calls.
    admitted: () => void setImmediate(prepare),
    calling: (name) => toolNamedInCall(tools, name)?.prepare?.(context, 'certain'),
    progress,
  };
  const remoteTimeoutMs = options.remoteTimeoutMs ?? REMOTE_TIMEOUT_MS_DEFAULT;
  return {
    conversation,
    routes,
    toolset: new Toolset(tools, options.definitions),
    bench: {
      tools,
      worker,
      context,
      instructions,
      judge,
      question: withTurnClocksHeld(question, ties.hold),
      remoteTimeoutMs,
      ...(beforeCall && { beforeCall }),
      ...(options.hooks && { hooks: options.hooks }),
    },
    limits,
    retry,
    admission: reportAgentPreparing(
      withoutIdleLimit(options.admission ?? admitByBudgetOnly(budget, notes), progress),
      agentNotes.admitted,
    ),
    ask: options.ask ?? askForAnswer,
    notes: agentNotes,
    cacheKey: options.cacheKey ?? options.id,
    sampling: options.sampling,
    inbox: ties.inbox,
    emit: (event, place) => {
      if (EVENTS[event.type].progress) progress();
      if (event.type === 'toolcall_start') agentNotes.calling(event.name);
      emit(event, place);
    },
    settled,
    spend,
    book,
    total,
  };
}

/** Reports that a request is about to be sent. */
function reportAgentPreparing({ admit }: Admission, onAdmitted: () => void): Admission {
  return {
    admit: async (wanted, signal) => {
      const admitted = await admit(wanted, signal);
      onAdmitted();
      return admitted;
    },
  };
}
