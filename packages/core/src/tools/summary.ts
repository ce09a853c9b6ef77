// One-line summaries of a call and its result, for rows and spinners.
//
// The text comes from a model or an untrusted program, so sequences that move the cursor, hide text or reverse it
// are removed.

import { stripVTControlCharacters } from 'node:util';
import { isJsonObject, type Json } from '@drover/protocol/json';

const INPUT_SUMMARY_CODE_POINTS_MAX = 100;
const OUTPUT_SUMMARY_CODE_POINTS_MAX = 80;
const LOOKED_AT_CHARS_MAX = 4_000;
const TELLING_ARGUMENTS = ['command', 'path', 'query', 'pattern', 'url'];

/** Summarizes the arguments of a call. `name` is the tool's label, or its name. */
export function toolInputSummary(name: string, args: Json): string {
  const telling = isJsonObject(args) ? TELLING_ARGUMENTS.map((key) => args[key]).find(isToolValueShown) : undefined;
  const text = telling === undefined ? `${name} ${JSON.stringify(args)}` : `${name}: ${telling}`;
  return toolSummaryLine(text, INPUT_SUMMARY_CODE_POINTS_MAX);
}

export function toolOutputSummary(text: string): string {
  return toolSummaryLine(text, OUTPUT_SUMMARY_CODE_POINTS_MAX);
}

function isToolValueShown(value: Json | undefined): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

function toolSummaryLine(text: string, codePointsMax: number): string {
  const looked = text.slice(0, LOOKED_AT_CHARS_MAX);
  const line = stripVTControlCharacters(looked)
    .toWellFormed()
    .replace(INVISIBLE, '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();
  const codePoints = Array.from(line);
  if (codePoints.length <= codePointsMax && looked.length === text.length) return line;
  return `${codePoints
    .slice(0, codePointsMax - 1)
    .join('')
    .trimEnd()}…`;
}

// Direction marks and overrides, zero-width and tag characters. The joiner U+200D is allowed, because emoji need it.
const INVISIBLE = /[\u061C\u200B\u200C\u200E\u200F\u202A-\u202E\u2060-\u2064\u2066-\u206F\uFEFF\u{E0000}-\u{E007F}]/gu;
