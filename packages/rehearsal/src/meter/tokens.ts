// Token counts: Unicode code points divided by four, which is close enough for prose and code.

import type { Json } from '../json.ts';

const CODE_POINTS_PER_TOKEN = 4;
/** Tokens of an image of any size: about those of one megapixel. */
const IMAGE_CODE_POINTS = 6_400;

/** Fields around the content: these names, and values under the names of the second set, are not part of a prompt. */
const ENVELOPE = new Set([
  'role',
  'type',
  'content',
  'text',
  'thinking',
  'output',
  'input',
  'arguments',
  'function',
  'tool_calls',
  'name',
  'description',
  'parameters',
  'input_schema',
  'summary',
]);
const MARKINGS = new Set([
  'role',
  'type',
  'id',
  'call_id',
  'tool_use_id',
  'tool_call_id',
  'status',
  'signature',
  'encrypted_content',
  'cache_control',
  'caller',
  'is_error',
  'strict',
]);
const IMAGES = new Set<Json | undefined>(['image', 'image_url', 'input_image']);

export function meterTokensIn(value: Json | undefined): number {
  return Math.ceil(meterWordsIn(value).reduce((sum, text) => sum + meterCodePoints(text), 0) / CODE_POINTS_PER_TOKEN);
}

/** Everything in a value that a model would read, in order. */
export function meterWordsIn(value: Json | undefined): readonly string[] {
  const words: string[] = [];
  collectMeterWords(value, words);
  return words;
}

function collectMeterWords(value: Json | undefined, words: string[]): void {
  if (value === undefined || value === null) return;
  if (typeof value !== 'object') words.push(String(value));
  else if (Array.isArray(value)) for (const item of value) collectMeterWords(item, words);
  else collectMeterFields(value as { readonly [key: string]: Json }, words);
}

function collectMeterFields(value: { readonly [key: string]: Json }, words: string[]): void {
  if (IMAGES.has(value['type'])) {
    words.push(JSON.stringify(value).slice(0, IMAGE_CODE_POINTS).padEnd(IMAGE_CODE_POINTS));
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    if (MARKINGS.has(key)) continue;
    if (!ENVELOPE.has(key)) words.push(key);
    collectMeterWords(item, words);
  }
}

function meterCodePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit >= 0xd800 && unit <= 0xdbff) count -= 1;
  }
  return count;
}
