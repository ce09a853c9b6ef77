// What a task needs of the run it belongs to while it works: somebody to tell, somebody to ask, leave to
// send a request, and a provider to send it to. In this thread it is the run itself; in another one it is a wire to
// it (wire.ts).

import type { Question } from '../agent/calls/calls.ts';
import type { Decision, Event, Place } from '@drover/protocol/events';
import type { Admission } from '../model/spending/admission.ts';
import type { Provider } from '../model/provider.ts';

export type TaskLink = {
  /** Who and where is known already: the place says only turn and step. */
  readonly emit: (event: Event, place: Pick<Place, 'turn' | 'step'>) => void;
  /** Everything told so far is safe. */
  readonly settled: () => Promise<void>;
  readonly admission: Admission;
  /** One for all tasks of the run. */
  readonly provider: Provider;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
};
