// The three errors that may be thrown: DroverError (ends a turn or run), ToolError (text for the model)
// and UsageError (text for the user). Any other error is a bug.

import { describe, type Failure } from '@drover/protocol/failures';

export class DroverError extends Error {
  override readonly name = 'DroverError';
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(describe(failure), options);
    this.failure = failure;
  }
}

/** Tells the model why its call failed. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** Tells the user what is wrong with the command line or the config, and how to fix it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
