// How many tokens something has: its Unicode code points by four, which is near enough for prose and code.

import type { Json } from '../json.ts';

const CODE_POINTS_PER_TOKEN = 4;
/** What an image costs, whatever its size: about one of a megapixel. */
const IMAGE_CODE_POINTS = 6_400;

export function tokensIn(value: Json | undefined): number {
  return Math.ceil(codePointsIn(value) / CODE_POINTS_PER_TOKEN);
}

/** The texts in a value, with the keys of its objects, for these are part of a prompt too. */
function codePointsIn(value: Json | undefined): number {
  if (typeof value === 'string') return codePoints(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value).length;
  if (value === undefined || value === null) return 0;
  if (Array.isArray(value)) return value.reduce((sum: number, item: Json) => sum + codePointsIn(item), 0);
  const entries = Object.entries(value);
  if (isImage(entries)) return IMAGE_CODE_POINTS;
  return entries.reduce((sum, [key, item]) => sum + key.length + codePointsIn(item), 0);
}

function isImage(entries: readonly [string, Json][]): boolean {
  return entries.some(
    ([key, item]) => key === 'type' && (item === 'image' || item === 'image_url' || item === 'input_image'),
  );
}

function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit >= 0xd800 && unit <= 0xdbff) count -= 1;
  }
  return count;
}
