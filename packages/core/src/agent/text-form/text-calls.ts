// Finds calls that a model wrote as text instead of making them.
//
// Every model does this now and then, in the dialect it was trained on. Such an answer has no effect, and in
// the history it teaches the model to repeat it. Drover discards the answer, asks again, and never runs the call.
//
// An answer counts as a call only if all of this holds:
//   1. The markup is at the beginning of a line, outside of code and quotations of any Markdown form.
//   2. It names a tool that the model was given.
//   3. The answer ends with it, or the stop reason says that calls follow.

import type { Stop } from '@drover/protocol/messages';
import { endOfTextFormMatch, type CutOff, type Dialect, dialects, FRAME, STARTS } from './dialects.ts';
import { withoutMarkdownCode } from './markdown-code.ts';

const STARTS_MAX = 20; // only the last ones are checked: a call that ends the answer is among them

export type TextFormCall = { readonly tool: string; readonly dialect: string };

/** Returns the call that a text ends with, or undefined for an ordinary answer. */
export function textFormCall(text: string, tools: readonly string[], stop: Stop): TextFormCall | undefined {
  // Fast path for nearly every answer.
  if (!/[<[`]/.test(text)) return undefined;
  for (const { index } of [...withoutMarkdownCode(text).matchAll(STARTS)].slice(-STARTS_MAX)) {
    for (const dialect of dialects) {
      const tool = textFormToolAt(text, index, dialect);
      if (tool === undefined || !tools.includes(tool)) continue;
      if (stop === 'tool_calls' || isLastTextFormCall(text, index, stop)) return { tool, dialect: dialect.name };
    }
  }
  return undefined;
}

function textFormToolAt(text: string, at: number, { opening }: Dialect): string | undefined {
  opening.lastIndex = at;
  const groups = opening.exec(text)?.groups;
  return (groups?.['tool'] ?? groups?.['bare'])?.replace(/^functions\./, '');
}

/** Returns true if only calls follow, up to the end of the text. */
function isLastTextFormCall(text: string, start: number, stop: Stop): boolean {
  const cutOff: CutOff = (from) =>
    stop === 'length' || !/\n\s*\n\s*\S/.test(text.slice(from)) ? text.length : undefined;
  for (
    let at: number | undefined = start;
    at !== undefined;
    at = textFormCallEnd(text, at, cutOff) ?? endOfTextFormMatch(text, at, FRAME)
  ) {
    if (at === text.length) return true;
  }
  return false;
}

function textFormCallEnd(text: string, at: number, cutOff: CutOff): number | undefined {
  for (const { opening, end } of dialects) {
    const from = endOfTextFormMatch(text, at, opening);
    const ended = from === undefined ? undefined : end(text, from, cutOff);
    if (ended !== undefined) return ended;
  }
  return undefined;
}
