// The hooks before and after the calls of one agent.

import type { Json } from '@drover/protocol/json';
import type { Hook } from './hook.ts';
import { type HookResult, runHooks } from './hooks.ts';
import type { HookPlace } from './run-hook.ts';

type HookedCall = { readonly name: string; readonly args: Json };

export type CallHooks = {
  readonly before: (call: HookedCall, signal: AbortSignal) => Promise<HookResult>;
  readonly after: (call: HookedCall & { readonly output: string }, signal: AbortSignal) => Promise<HookResult>;
};

/** Returns undefined if there are no hooks for calls. `id` names the run or session. */
export function callHooks(hooks: readonly Hook[], id: string, place: HookPlace): CallHooks | undefined {
  if (!hooks.some(({ at }) => at === 'before call' || at === 'after call')) return undefined;
  return {
    before: (call, signal) => runHooks({ hooks, at: 'before call', id, call }, place, signal),
    after: (call, signal) => runHooks({ hooks, at: 'after call', id, call }, place, signal),
  };
}
