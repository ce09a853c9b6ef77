// The three things that may be thrown: DroverError (the turn or run must hear of it), ToolError (text for the model)
// and UsageError (text for the person at the prompt). Anything else is a bug.

import { describe, type Failure } from '@drover/protocol/failures';

export class DroverError extends Error {
  override readonly name = 'DroverError';
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(describe(failure), options);
    this.failure = failure;
  }
}

/** Text for the model: the call it made did not work. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** Text for the person at the prompt: what is wrong with what they typed or configured, and the fix. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
