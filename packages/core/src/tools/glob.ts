// glob: finds files by name.

import { relative } from 'node:path';
import * as z from 'zod/mini';
import { readableToolPath, tidyToolPath } from './files/paths.ts';
import { askRipgrep, ripgrepNamePattern } from './files/ripgrep.ts';
import { defineTool } from './tool.ts';

const PATHS_MAX = 500;

export const glob = defineTool({
  name: 'glob',
  description: 'Find files by name, e.g. *.ts (in any folder) or src/**/*.test.ts. Leaves out what is git-ignored.',
  input: z.strictObject({
    pattern: z.string().check(z.minLength(1)),
    path: z.optional(z.string().check(z.describe('Folder to look in.'))),
  }),
  access: 'read',
  repeatable: true,
  subject: ({ path = '.' }) => tidyToolPath(path),
  async run({ pattern, path = '.' }, context) {
    const place = await readableToolPath(path, context);
    const { args, matches } = ripgrepNamePattern(pattern);
    const found: string[] = [];
    let more = 0;
    await askRipgrep({ args: ['--files', ...args], place }, context, (file) => {
      if (!matches(relative(place.shown, file)) || context.denied?.matches(file) === true) return true;
      if (found.length < PATHS_MAX) found.push(file);
      else more++;
      return true;
    });
    if (found.length === 0) return 'no files found';
    return [...found, ...(more > 0 ? [`[${more} more: narrow the pattern]`] : [])].join('\n');
  },
});
