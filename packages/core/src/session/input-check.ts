// Rejects input that does not fit the state of a session, before anything is changed.

import type { PendingCall } from '@drover/protocol/events';
import { UsageError } from '../errors.ts';
import type { Input } from './execution.ts';

export type Standing = {
  readonly id: string;
  readonly pending: readonly PendingCall[];
  readonly canResume: boolean;
};

export function checkSessionInput(input: Input, { id, pending, canResume }: Standing): void {
  if ('content' in input && input.cancelPending !== true && pending.length > 0)
    throw new UsageError(`session ${id} waits for the results of ${pending.length} remote calls`);
  if ('results' in input && pending.length === 0) throw sessionWithoutCalls(id);
  if ('resume' in input && !canResume)
    throw new UsageError(`session ${id} has nothing to resume: its last turn is done`);
}

export function busySession(id: string): UsageError {
  return new UsageError(`session ${id} is busy: wait for its turn to end, or cancel it`);
}

export function sessionWithoutCalls(id: string): UsageError {
  return new UsageError(`session ${id} waits for no results`);
}
