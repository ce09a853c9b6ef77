// An execution of a session as data: the input that it begins with, and its result.

import type { PendingCall } from '@drover/protocol/events';
import type { ImagePart, Message, TextPart, Usage } from '@drover/protocol/messages';
import type { TurnOutcome } from '@drover/protocol/outcomes';
import type { Denial } from '../agent/calls/calls.ts';
import type { RemoteResult } from '../agent/calls/remote-calls.ts';
import type { Showing } from '../agent/showing.ts';

/** Input of an execution: a message, results for a suspended session, or a request to resume. */
export type Input =
  | {
      readonly content: string | readonly (TextPart | ImagePart)[];
      /** Gives up pending remote calls. Without it, a message is refused while calls are pending. */
      readonly cancelPending?: boolean;
    }
  | { readonly results: readonly RemoteResult[] }
  | { readonly resume: true };

export type SessionStatus = 'idle' | 'running' | 'awaiting_tool_execution';

export type ExecutionResult = {
  readonly outcome: TurnOutcome;
  readonly messages: readonly Message[]; // the new ones
  readonly pending: readonly PendingCall[];
  readonly denials: readonly Denial[];
  /** Subjects of the last refused calls, if no call ran after them. */
  readonly refused: readonly string[];
  readonly usage: Usage; // of this execution
  readonly cost?: number;
};

export type Execution = Showing<ExecutionResult>;
