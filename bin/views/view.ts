// The type of a view: shows the events of a session or a run as they arrive.

import type { RunControl } from '@drover/coordinator/control/run-control';
import type { Shown } from '@drover/core/bus';
import type { Questions } from '@drover/core/permission/questions';
import type { JsonObject } from '@drover/protocol/json';

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
  /** Asks for permission in the view itself; absent where the user is asked line by line. */
  readonly asked?: Pick<Questions, 'ask' | 'remembered'>;
  /** Lets the user operate the run from the view. */
  readonly operate?: (desk: RunDesk) => void;
};

/** Calls of a view to the run that it shows. */
export type RunDesk = {
  readonly control: RunControl;
  /** The changes of a task so far, as a patch that is safe to show. */
  readonly diff: (task: string) => Promise<string>;
  /** The records of a task or of the coordinator, from the journal, and later ones as they come. */
  readonly log: (who: string, signal: AbortSignal) => AsyncIterable<JsonObject>;
  /** Ends the run early, as Ctrl-C does. */
  readonly stop: () => void;
  /** Whether a question rings the bell of the terminal. */
  readonly bell: boolean;
};
