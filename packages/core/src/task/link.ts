// Task link: what a running task needs from its run. It emits events, asks questions, and gets admission and a
// model answers. In the run's own thread the link is the run itself; in another thread it is a wire (wire.ts).

import type { Question } from '../agent/calls/calls.ts';
import type { Decision, Event, Place } from '@drover/protocol/events';
import type { Admission } from '../model/spending/admission.ts';
import type { ModelEvent, ModelRequest } from '@drover/protocol/model';

export type TaskLink = {
  /** Emits an event. The run knows worker, task and attempt, so the place holds only turn and step. */
  readonly emit: (event: Event, place: Pick<Place, 'turn' | 'step'>) => void;
  /** Resolves when every event emitted so far is durable. */
  readonly settled: () => Promise<void>;
  readonly admission: Admission;
  /** Streams the answer of one of the run's models, by its label, as a provider would. */
  readonly stream: (model: string, request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
};
