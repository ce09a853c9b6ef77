// An execution of a session as data: the input that it begins with, and its result.

import type { PendingCall } from '@drover/protocol/events';
import type { ImagePart, Message, TextPart, Usage } from '@drover/protocol/messages';
import type { TurnOutcome } from '@drover/protocol/outcomes';
import type { Denial } from '../agent/calls/calls.ts';
import type { RemoteResult } from '../agent/calls/remote-calls.ts';
import type { Showing } from '../agent/showing.ts';

/** What an execution begins with: a message, the results a suspended session waits for, or the wish to go on. */
export type Input =
  | {
      readonly content: string | readonly (TextPart | ImagePart)[];
      /** Remote calls that are waited for are given up; without it, a message meanwhile is refused. */
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
  /** The subjects of calls that were refused last: the agent stopped for want of them. */
  readonly refused: readonly string[];
  readonly usage: Usage; // of this execution
  readonly cost?: number;
};

export type Execution = Showing<ExecutionResult>;
