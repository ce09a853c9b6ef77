// The form in which hooks of Claude Code expect their input, and answer on standard output.
//
// Answers only narrow: `deny` and `block` count, `allow` and `approve` do not.

import { isAbsolute, join } from 'node:path';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';

const NAMES: Readonly<Record<string, string>> = {
  shell: 'Bash',
  read: 'Read',
  write: 'Write',
  edit: 'Edit',
  list: 'LS',
  glob: 'Glob',
  grep: 'Grep',
  skill: 'Skill',
};

export function claudeToolName(name: string): string {
  return NAMES[name] ?? name;
}

/** The arguments of a call under the names that such hooks read. */
export function claudeToolInput(name: string, args: Json, cwd: string): Json {
  if (!isJsonObject(args)) return args;
  const { path, timeoutMs, old: before, new: after, ...others } = args;
  const place = typeof path === 'string' && !isAbsolute(path) ? join(cwd, path) : path;
  const named = ['read', 'write', 'edit'].includes(name) ? 'file_path' : 'path';
  return {
    ...others,
    ...(place !== undefined && { [named]: place }),
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    ...(before !== undefined && { old_string: before }),
    ...(after !== undefined && { new_string: after }),
  };
}

/** The reason with which an answer on standard output blocks; undefined if it blocks nothing. */
export function blockingReasonOfHook(stdout: string): string | undefined {
  const answer = parseHookOutput(stdout.trim());
  if (answer === undefined) return undefined;
  const specific = answer['hookSpecificOutput'];
  const { permissionDecision, permissionDecisionReason } = isJsonObject(specific ?? null)
    ? (specific as JsonObject)
    : {};
  if (permissionDecision === 'deny') return hookTextOr(permissionDecisionReason);
  if (answer['decision'] === 'block' || answer['decision'] === 'deny') return hookTextOr(answer['reason']);
  return answer['continue'] === false ? hookTextOr(answer['stopReason']) : undefined;
}

function hookTextOr(value: Json | undefined): string {
  return typeof value === 'string' && value !== '' ? value : 'it gave no reason';
}

function parseHookOutput(text: string): JsonObject | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const value = JSON.parse(text) as Json;
    return isJsonObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
