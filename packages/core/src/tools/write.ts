// write: creates a file, or replaces its whole content.

import { stat } from 'node:fs/promises';
import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { fileChangeBetween, fileChangeSize, fileLineCount } from './files/changes.ts';
import { readToolFileText, replaceToolFile } from './files/content.ts';
import {
  fileErrorCode,
  oneFileChangeAtATime,
  type Place,
  tidyToolPath,
  unusableToolPath,
  writableToolPath,
} from './files/paths.ts';
import { defineTool, type ToolOutput } from './tool.ts';

const NOT_TEXT = Symbol('not text');

export const write = defineTool({
  name: 'write',
  description: 'Create a file (and its folders) or replace its whole content. To change a part, use edit.',
  input: z.strictObject({ path: z.string(), content: z.string() }),
  access: 'write',
  repeatable: true,
  subject: ({ path }) => tidyToolPath(path),
  touches: ({ path }) => [tidyToolPath(path)],
  async run({ path, content }, context) {
    const place = await writableToolPath(path, context);
    return oneFileChangeAtATime(place.real, () => writeWholeByTool(place, content));
  },
});

async function writeWholeByTool(place: Place, content: string): Promise<ToolOutput> {
  const path = place.shown;
  const before = await contentBeforeWriteTool(place);
  if (before === content) return { output: `${path} already has this content`, details: { path } };
  await replaceToolFile(place, content);
  if (before === undefined) {
    const added = fileLineCount(content);
    return {
      output: `created ${path} (${wordLinesWritten(added)})`,
      details: { path, created: true, added, removed: 0 },
    };
  }
  if (before === NOT_TEXT) {
    return {
      output: `replaced ${path} (${wordLinesWritten(fileLineCount(content))})`,
      details: { path, created: false },
    };
  }
  const change = await fileChangeBetween(path, before, content);
  return { output: `updated ${path} (${fileChangeSize(change)})`, details: { path, created: false, ...change } };
}

function wordLinesWritten(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`;
}

async function contentBeforeWriteTool(place: Place): Promise<string | typeof NOT_TEXT | undefined> {
  try {
    await stat(place.real);
    const { text, bom } = await readToolFileText(place);
    return bom + text;
  } catch (error) {
    if (fileErrorCode(error) === 'ENOENT') return undefined;
    if (error instanceof ToolError) return NOT_TEXT;
    throw unusableToolPath(error, place.shown);
  }
}
