// grep: finds lines by regular expression.

import { relative } from 'node:path';
import * as z from 'zod/mini';
import { readableToolPath, tidyToolPath } from './files/paths.ts';
import { askRipgrep, ripgrepNamePattern } from './files/ripgrep.ts';
import { defineTool } from './tool.ts';

const LINES_MAX = 300;
const LINE_CHARS_MAX = 300;
// Separates the path from the line in ripgrep's output. Paths may contain any common character.
const MARK = '\x1f';

export const grep = defineTool({
  name: 'grep',
  description: 'Search file contents by regular expression. Gives path:line:text. Leaves out what is git-ignored.',
  input: z.strictObject({
    pattern: z.string().check(z.minLength(1)),
    path: z.optional(z.string().check(z.describe('File or folder to search.'))),
    glob: z.optional(z.string().check(z.describe('Only files like this, e.g. *.ts.'))),
    ignoreCase: z.optional(z.boolean()),
    context: z.optional(z.int().check(z.gte(0), z.lte(20), z.describe('Lines around each match.'))),
  }),
  access: 'read',
  repeatable: true,
  subject: ({ path = '.' }) => tidyToolPath(path),
  async run({ pattern, path = '.', glob = '**', ignoreCase = false, context: around = 0 }, context) {
    const place = await readableToolPath(path, context);
    const { args, matches } = ripgrepNamePattern(glob);
    const options = `--line-number --with-filename --no-heading --max-columns=${LINE_CHARS_MAX} --max-columns-preview`;
    const separators = [`--field-match-separator=${MARK}:`, `--field-context-separator=${MARK}-`];
    const wanted = [`--regexp=${pattern}`, `--context=${around}`, ...(ignoreCase ? ['--ignore-case'] : [])];
    const found: string[] = [];
    await askRipgrep({ args: [...options.split(' '), ...separators, ...wanted, ...args], place }, context, (line) => {
      const end = line.indexOf(MARK);
      const file = line.slice(0, end);
      if (end !== -1 && (!matches(relative(place.shown, file)) || context.denied?.matches(file) === true)) return true;
      found.push(line.replaceAll(MARK, ''));
      return found.length <= LINES_MAX;
    });
    if (found.length === 0) return 'no matches';
    if (found.length <= LINES_MAX) return found.join('\n');
    return [...found.slice(0, LINES_MAX), '[more matches: narrow the search]'].join('\n');
  },
});
