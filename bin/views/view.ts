// The type of a view: shows the events of a session or a run as they arrive.

import type { Shown } from '@drover/core/bus';

export type View = {
  /** Resolves when there is room for more, so that a slow reader slows nobody but itself: see the bus. Undefined where there is. */
  readonly show: (event: Shown) => Promise<void> | undefined;
  /** Takes an earlier event without showing it. Views without memory omit it. */
  readonly recall?: (event: Shown) => void;
  /** Words of drover's own, for a person; views for programs leave them out. */
  readonly say: (text: string) => Promise<void>;
  /** Nothing more comes. */
  readonly close: () => Promise<void>;
};

export type RunView = View & {
  /** Asks the person at the terminal; until they have answered, nothing is painted over the question. */
  readonly whileAsking: <Answer>(ask: () => Promise<Answer>) => Promise<Answer>;
};
