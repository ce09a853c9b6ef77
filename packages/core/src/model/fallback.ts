// The models that one agent may ask, in the user's order: the first is preferred, the others are fallbacks.
//
// Guarantees
//   1. The agent moves only forward, and only to a model of the list.
//   2. A move lasts until the end of the attempt. The next attempt begins with the first model again.

import type { Failure } from '@drover/protocol/failures';
import type { Price } from './catalog.ts';
import type { Provider } from './provider.ts';

const TIMEOUT_STATUS = 408;
const SERVER_ERROR = 500;

/** Attempts at an unavailable model before the next one is asked. */
export const ATTEMPTS_BEFORE_FALLBACK = 3;

/** A model with its provider, limits and price. */
export type ModelRoute = {
  readonly provider: Provider;
  readonly model: string; // without the provider
  readonly contextTokens: number;
  readonly outputTokensMax: number;
  readonly price?: Price;
};

/** The model as provider/name. */
export function labelOfModel({
  provider,
  model,
}: Pick<ModelRoute, 'model'> & { readonly provider: { id: string } }): string {
  return `${provider.id}/${model}`;
}

/** Whether the failure is about availability, so that another model may answer. Refusals and limits are not. */
export function isModelUnavailable(failure: Failure): boolean {
  switch (failure.kind) {
    case 'provider.unavailable':
      return failure.status === undefined || failure.status === TIMEOUT_STATUS || failure.status >= SERVER_ERROR;
    case 'provider.stalled':
      return true;
    default:
      return false;
  }
}

export class ModelRoutes {
  readonly #routes: readonly [ModelRoute, ...ModelRoute[]];
  #at = 0;

  constructor(first: ModelRoute, fallbacks: readonly ModelRoute[] = []) {
    this.#routes = [first, ...fallbacks];
  }

  get first(): ModelRoute {
    return this.#routes[0];
  }

  get current(): ModelRoute {
    return this.#routes[this.#at] ?? this.first;
  }

  get hasNext(): boolean {
    return this.#at + 1 < this.#routes.length;
  }

  /** Moves to the next model and returns it; undefined if the list has none. */
  next(): ModelRoute | undefined {
    if (!this.hasNext) return undefined;
    this.#at += 1;
    return this.current;
  }

  /** Moves to the model that an interrupted attempt had reached. A model that is not in the list is ignored. */
  restore(label: string): void {
    this.#at = Math.max(
      0,
      this.#routes.findIndex((route) => labelOfModel(route) === label),
    );
  }
}
