// The result of a call for the user: one line, and for an edit the diff.
//
// A result's own text is written for the model. The user wants to know how many lines were read or that a command
// failed, not the whole output.

import type { DeniedCall } from '@drover/core/permission/denied-calls';
import type { Event } from '@drover/protocol/events';
import { isJsonObject, type Json } from '@drover/protocol/json';
import { countText } from './figures.ts';

const DIFF_LINES_MAX = 12;
const DENIED_LISTED_MAX = 20;

const LEFT_OUT = /^\[… .* left out; .* …\]$/; // the line that capture.ts writes

type CallEnd = Extract<Event, { readonly type: 'tool_execution_end' }>;

export function callResultLine({ output, outputSummary, isError, details }: CallEnd): string {
  // The notes at the end, such as [exit code 1], are not the command's.
  const lines = output
    .trimEnd()
    .replace(/(\n\[[^\n]*\])+$/, '')
    .split('\n');
  const exitCode = callDetailsField(details, 'exitCode');
  const whole = callLineWords(lines, details);
  const amount = lines.length === 1 ? outputSummary : whole;
  if (typeof exitCode === 'number') return exitCode === 0 ? amount : `exit code ${exitCode}, ${whole}`;
  if (isError || callDiff(details) !== undefined) return lines[0] ?? '';
  return amount;
}

/** For truncated output the tool reports the real number; without it, the text says that it was truncated. */
function callLineWords(lines: readonly string[], details: Json | undefined): string {
  const real = callDetailsField(details, 'lines');
  if (typeof real === 'number') return `${countText(real)} lines`;
  return lines.some((line) => LEFT_OUT.test(line)) ? 'shortened output' : `${countText(lines.length)} lines`;
}

/** A line for each call that was not allowed, such as `billing: shell: curl x — denied by the rule shell(curl*)`. */
export function deniedCallLines(calls: readonly DeniedCall[]): readonly string[] {
  const lines = calls.slice(0, DENIED_LISTED_MAX).map(({ task, summary, why, times }) => {
    const whose = task === undefined ? '' : `${task}: `;
    return `${whose}${summary} — ${why}${times > 1 ? ` (${times} times)` : ''}`;
  });
  const more = calls.length - DENIED_LISTED_MAX;
  return more > 0 ? [...lines, `… and ${countText(more)} more`] : lines;
}

/** The lines of a change that are worth a look. */
export function callDiffLines({ details }: CallEnd): readonly string[] {
  const lines = (callDiff(details) ?? '')
    .split('\n')
    .filter((line) => /^[-+ ]/.test(line) && !/^(---|\+\+\+) /.test(line));
  if (lines.length <= DIFF_LINES_MAX) return lines;
  return [...lines.slice(0, DIFF_LINES_MAX), `… ${countText(lines.length - DIFF_LINES_MAX)} lines more`];
}

function callDiff(details: Json | undefined): string | undefined {
  const diff = callDetailsField(details, 'diff');
  return typeof diff === 'string' ? diff : undefined;
}

function callDetailsField(details: Json | undefined, name: string): Json | undefined {
  return details !== undefined && isJsonObject(details) ? details[name] : undefined;
}
