// The type of a view: shows the events of a session or a run as they arrive.

import type { Shown } from '@drover/core/bus';

export type View = {
  /**
   * Resolves when there is room for more events, so that a slow reader delays only itself; undefined if there is room.
   */
  readonly show: (event: Shown) => Promise<void> | undefined;
  /** Takes an earlier event without showing it. Views without memory omit it. */
  readonly recall?: (event: Shown) => void;
  /** Shows a message of drover itself to the user; views for programs omit it. */
  readonly say: (text: string) => Promise<void>;
  /** Ends the view, after the last event. */
  readonly close: () => Promise<void>;
};

export type RunView = View & {
  /** Asks the person at the terminal; until they have answered, nothing is painted over the question. */
  readonly whileAsking: <Answer>(ask: () => Promise<Answer>) => Promise<Answer>;
};
