// list: lists the entries of a folder.

import type { Dirent } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { withNearFileNames } from './files/content.ts';
import { holdFileFolder } from './files/held.ts';
import { fileErrorCode, readableToolPath, tidyToolPath } from './files/paths.ts';
import { defineTool } from './tool.ts';

const ENTRIES_MAX = 500;

export const list = defineTool({
  name: 'list',
  description: 'List a folder. Folders end in /.',
  input: z.strictObject({ path: z.optional(z.string().check(z.describe('Default: the workspace.'))) }),
  access: 'read',
  repeatable: true,
  subject: ({ path = '.' }) => tidyToolPath(path),
  async run({ path = '.' }, context) {
    const place = await readableToolPath(path, context);
    const { real, shown } = place;
    await using folder = await holdFileFolder(real, { shown }).catch(async (error: unknown) => {
      if (fileErrorCode(error) === 'ENOTDIR') throw new ToolError(`${shown} is a file: use read`);
      throw await withNearFileNames(error, place);
    });
    const entries = await readdir(folder.at, { withFileTypes: true }).catch(async (error: unknown) => {
      throw await withNearFileNames(error, place);
    });
    if (entries.length === 0) return '(empty folder)';
    const sorted = entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const lines = await Promise.all(sorted.slice(0, ENTRIES_MAX).map((entry) => listToolEntry(folder.at, entry)));
    const more = entries.length - ENTRIES_MAX;
    return [...lines, ...(more > 0 ? [`[${more} more]`] : [])].join('\n');
  },
});

async function listToolEntry(folder: string, entry: Dirent): Promise<string> {
  if (entry.isDirectory()) return `${entry.name}/`;
  if (!entry.isSymbolicLink()) return entry.name;
  return `${entry.name} -> ${await readlink(join(folder, entry.name)).catch(() => '?')}`;
}
