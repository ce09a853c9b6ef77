// Reads the `hooks` section of a .claude/settings.json, as far as its events are moments of drover.
//
// A section with a mistake gives a warning and no hooks: half of a guard is worse than a named problem.

import type { Hook, HookPoint } from '@drover/core/hooks/hook';
import { HOOK_MS_DEFAULT, HOOK_MS_MAX } from '@drover/core/hooks/hook';
import { isJsonObject, type Json } from '@drover/protocol/json';
import type { SourceFile } from './source.ts';

const MOMENTS: Readonly<Record<string, HookPoint>> = {
  PreToolUse: 'before call',
  PostToolUse: 'after call',
  SessionStart: 'before run',
  SessionEnd: 'after run',
  SubagentStart: 'before task',
  SubagentStop: 'after task',
};
const HOOKS_MAX = 100;

export type ReadHooks = { readonly hooks: readonly Hook[]; readonly warnings: readonly string[] };

export function readClaudeHooks(sources: readonly SourceFile[]): ReadHooks {
  const read = sources.map(hooksInClaudeFile);
  return { hooks: read.flatMap(({ hooks }) => hooks), warnings: read.flatMap(({ warnings }) => warnings) };
}

function hooksInClaudeFile({ name, text, isOwn }: SourceFile): ReadHooks {
  const parsed = parseClaudeHooks(text);
  if (typeof parsed === 'string') return refuseClaudeHooks(`${name}: ${parsed}`);
  const section = isJsonObject(parsed) ? parsed['hooks'] : undefined;
  if (section === undefined || !isJsonObject(section)) return refuseClaudeHooks(`${name}: hooks must be an object`);
  const hooks: Hook[] = [];
  const warnings: string[] = [];
  for (const [event, groups] of Object.entries(section)) {
    const at = MOMENTS[event];
    if (at === undefined) {
      warnings.push(`${name}: drover has no moment like ${event}, so its hooks are left out`);
      continue;
    }
    for (const group of Array.isArray(groups) ? groups : [groups]) {
      const made = claudeHookGroup(group, { at, event, place: `${name} ${event}`, isOwn, form: 'claude' });
      if (typeof made === 'string') return refuseClaudeHooks(`${name}: ${event}: ${made}`);
      hooks.push(...made);
    }
  }
  return { hooks: hooks.slice(0, HOOKS_MAX), warnings };
}

function claudeHookGroup(group: Json, common: Omit<Hook, 'command' | 'timeoutMs'>): readonly Hook[] | string {
  if (!isJsonObject(group) || !Array.isArray(group['hooks'])) return 'a group needs a list of hooks';
  const { matcher } = group;
  if (matcher !== undefined && typeof matcher !== 'string') return 'the matcher must be text';
  if (typeof matcher === 'string' && matcher !== '*' && !isClaudeHookPattern(matcher))
    return `the matcher '${matcher}' is no regular expression`;
  const hooks: Hook[] = [];
  for (const hook of group['hooks'] as readonly Json[]) {
    if (!isJsonObject(hook)) return 'a hook must be an object';
    const { type = 'command', command, timeout } = hook;
    if (type !== 'command' || typeof command !== 'string' || command.trim() === '')
      return 'a hook needs "type": "command" and a command';
    const seconds = typeof timeout === 'number' && timeout > 0 ? timeout : HOOK_MS_DEFAULT / 1_000;
    const timeoutMs = Math.min(seconds * 1_000, HOOK_MS_MAX);
    hooks.push({ ...common, command, timeoutMs, ...(typeof matcher === 'string' && { tools: matcher }) });
  }
  return hooks;
}

function isClaudeHookPattern(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Returns the problem, with the line as far as the parser tells it, as text. */
function parseClaudeHooks(text: string): Json | string {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === 'string' ? 'this is no object' : value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const at = /position (\d+)/.exec(error.message)?.[1];
    const line = at === undefined ? '' : `line ${text.slice(0, Number(at)).split('\n').length}: `;
    return `${line}this is no JSON`;
  }
}

function refuseClaudeHooks(warning: string): ReadHooks {
  return { hooks: [], warnings: [`${warning}; its hooks are left out`] };
}
