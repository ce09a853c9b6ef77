// Task link: what a running task needs from its run. It emits events, asks questions, and gets admission and a
// provider for requests. In the run's own thread the link is the run itself; in another thread it is a wire (wire.ts).

import type { Question } from '../agent/calls/calls.ts';
import type { Decision, Event, Place } from '@drover/protocol/events';
import type { Admission } from '../model/spending/admission.ts';
import type { Provider } from '../model/provider.ts';

export type TaskLink = {
  /** Emits an event. The run knows worker, task and attempt, so the place holds only turn and step. */
  readonly emit: (event: Event, place: Pick<Place, 'turn' | 'step'>) => void;
  /** Resolves when every event emitted so far is durable. */
  readonly settled: () => Promise<void>;
  readonly admission: Admission;
  /** The provider that all tasks of the run share. */
  readonly provider: Provider;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
};
