// write: creates a file, or replaces its whole content.

import { stat } from 'node:fs/promises';
import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { changeBetween, changeSize, lineCount } from './files/changes.ts';
import { readText, replaceFile } from './files/content.ts';
import { codeOf, oneChangeAtATime, type Place, tidyPath, unusable, writablePlace } from './files/paths.ts';
import { defineTool, type ToolOutput } from './tool.ts';

const NOT_TEXT = Symbol('not text');

export const write = defineTool({
  name: 'write',
  description: 'Create a file (and its folders) or replace its whole content. To change a part, use edit.',
  input: z.strictObject({ path: z.string(), content: z.string() }),
  access: 'write',
  repeatable: true,
  subject: ({ path }) => tidyPath(path),
  touches: ({ path }) => [tidyPath(path)],
  async run({ path, content }, context) {
    const place = await writablePlace(path, context);
    return oneChangeAtATime(place.real, () => writeWhole(place, content));
  },
});

async function writeWhole(place: Place, content: string): Promise<ToolOutput> {
  const path = place.shown;
  const before = await contentBefore(place);
  if (before === content) return { output: `${path} already has this content`, details: { path } };
  await replaceFile(place, content);
  if (before === undefined) {
    const added = lineCount(content);
    return { output: `created ${path} (${lines(added)})`, details: { path, created: true, added, removed: 0 } };
  }
  if (before === NOT_TEXT) {
    return { output: `replaced ${path} (${lines(lineCount(content))})`, details: { path, created: false } };
  }
  const change = await changeBetween(path, before, content);
  return { output: `updated ${path} (${changeSize(change)})`, details: { path, created: false, ...change } };
}

function lines(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`;
}

async function contentBefore(place: Place): Promise<string | typeof NOT_TEXT | undefined> {
  try {
    await stat(place.real);
    const { text, bom } = await readText(place);
    return bom + text;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (error instanceof ToolError) return NOT_TEXT;
    throw unusable(error, place.shown);
  }
}
