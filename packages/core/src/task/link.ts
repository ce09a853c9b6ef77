// Task link: what a running task needs from its run. It emits events, asks questions, calls tools of servers, and gets
// answers of models and messages of the user. In the run's own thread the link is the run itself; in another thread it
// is a wire (wire.ts).

import type { Question } from '../agent/calls/calls.ts';
import type { Decision, Event, Place } from '@drover/protocol/events';
import type { CallServed } from '../tools/served/served.ts';
import type { AskHooks, AskOrder, AskResult } from './asking.ts';

/** A message of the user to the agent of a task. */
export type TaskMessage = { readonly id: string; readonly text: string };

/** Messages of the user on their way to an agent. */
export type Mail = {
  /** Calls back with each message that waits, and with each later one. */
  readonly onMessage: (hear: (message: TaskMessage) => void) => void;
  /** The agent's conversation has the message. */
  readonly delivered: (id: string) => void;
};

export type TaskLink = {
  /** Emits an event. The run knows worker, task and attempt, so the place holds only turn and step. */
  readonly emit: (event: Event, place: Pick<Place, 'turn' | 'step'>) => void;
  /** Resolves when every event emitted so far is durable. */
  readonly settled: () => Promise<void>;
  /** Takes an answer from one of the run's models. Its events, retries and costs are told on the way. */
  readonly ask: (order: AskOrder, hooks: AskHooks, signal: AbortSignal) => Promise<AskResult>;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
  /** Calls a tool of a server that the run is connected to. */
  readonly callServed: CallServed;
  readonly mail: Mail;
};
