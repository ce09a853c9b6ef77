// The hooks of one moment: those that match run in the order in which they are written, up to the first that blocks.

import type { Json, JsonObject } from '@drover/protocol/json';
import { claudeToolInput, claudeToolName } from './claude-form.ts';
import type { Hook, HookPoint } from './hook.ts';
import { type HookPlace, runHook } from './run-hook.ts';

export type HookFacts = {
  /** The run or session. */
  readonly id: string;
  /** Further facts of the moment, such as the task. */
  readonly facts?: JsonObject;
  /** The call, for hooks before and after calls. */
  readonly call?: { readonly name: string; readonly args: Json; readonly output?: string };
};

export type HookResult = {
  /** The words of the hook that blocks; undefined if none blocks. */
  readonly block?: string;
  /** Hooks that failed, timed out or could not run. */
  readonly warnings: readonly string[];
};

/** Throws DroverError if a sandbox does not start. */
export async function runHooks(
  { hooks, at, ...about }: { readonly hooks: readonly Hook[]; readonly at: HookPoint } & HookFacts,
  place: HookPlace,
  signal: AbortSignal,
): Promise<HookResult> {
  const warnings: string[] = [];
  for (const hook of hooks) {
    if (hook.at !== at || !doesHookMatch(hook, about.call?.name)) continue;
    const end = await runHook({ hook, input: hookInput(hook, about, place.cwd), place }, signal);
    if (end.kind === 'block') return { block: end.words, warnings };
    if (end.kind === 'problem') warnings.push(end.words);
  }
  return { warnings };
}

function doesHookMatch({ tools, form }: Hook, name: string | undefined): boolean {
  if (tools === undefined || tools === '' || tools === '*' || name === undefined) return true;
  const called = form === 'claude' ? claudeToolName(name) : name;
  return new RegExp(`^(?:${tools})$`).test(called);
}

function hookInput(hook: Hook, { id, facts = {}, call }: HookFacts, cwd: string): JsonObject {
  if (hook.form === 'claude')
    return {
      session_id: id,
      cwd,
      hook_event_name: hook.event ?? '',
      ...(call !== undefined && {
        tool_name: claudeToolName(call.name),
        tool_input: claudeToolInput(call.name, call.args, cwd),
        ...(call.output !== undefined && { tool_response: { output: call.output } }),
      }),
    };
  return {
    hook: hook.at,
    id,
    cwd,
    ...facts,
    ...(call !== undefined && {
      tool: call.name,
      args: call.args,
      ...(call.output !== undefined && { output: call.output }),
    }),
  };
}
