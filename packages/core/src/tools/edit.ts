// edit: replaces a passage of a file.
//
// The tool looks for the exact passage, then ignores differences in white space (see files/passage.ts). The passage
// must occur once unless `all` is set, because a guess could change the wrong place. Line ends and the byte order
// mark are preserved.

import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { changeBetween, changeSize } from './files/changes.ts';
import { readText, replaceFile } from './files/content.ts';
import { findExact, findTolerant, lineAt, type Match, MATCHES_MAX, nearestLine } from './files/passage.ts';
import { oneChangeAtATime, type Place, tidyPath, writablePlace } from './files/paths.ts';
import { defineTool, type ToolOutput } from './tool.ts';

const MATCHES_TOLD_MAX = 10;

type Passage = { readonly old: string; readonly new: string; readonly all?: boolean | undefined };

export const edit = defineTool({
  name: 'edit',
  description:
    'Replace the passage `old` of a file by `new`. `old` must occur once (add lines around it) unless `all`.',
  input: z.strictObject({ path: z.string(), old: z.string(), new: z.string(), all: z.optional(z.boolean()) }),
  access: 'write',
  subject: ({ path }) => tidyPath(path),
  touches: ({ path }) => [tidyPath(path)],
  async run({ path, ...passage }, context) {
    if (passage.old === '') throw new ToolError('old is empty: to make or replace a whole file, use write');
    if (passage.old === passage.new) throw new ToolError('old and new are the same');
    const place = await writablePlace(path, context);
    return oneChangeAtATime(place.real, () => replacePassage(place, passage));
  },
});

async function replacePassage(place: Place, passage: Passage): Promise<ToolOutput> {
  const { text, bom } = await readText(place);
  const { matches, isExact } = matchesIn(text, place, passage);
  let after = '';
  let from = 0;
  for (const match of matches) {
    after += text.slice(from, match.from) + match.replacement;
    from = match.to;
  }
  after += text.slice(from);
  if (after === text) throw new ToolError(`${place.shown} would not change`);

  await replaceFile(place, bom + after);
  const change = await changeBetween(place.shown, text, after);
  const how = isExact ? '' : ', found with different white space';
  const many = matches.length === 1 ? '' : `, ${matches.length} places`;
  return {
    output: `edited ${place.shown} (${changeSize(change)}${many}${how})${change.diff === undefined ? '' : `\n${change.diff}`}`,
    details: { path: place.shown, ...change },
  };
}

function matchesIn(
  text: string,
  { shown }: Place,
  { old, new: replacement, all = false }: Passage,
): { readonly matches: readonly Match[]; readonly isExact: boolean } {
  const exact = findExact(text, old, replacement);
  const matches = exact.length > 0 ? exact : findTolerant(text, old, replacement);
  if (matches.length === 0) throw new ToolError(`old was not found in ${shown}${nearestLine(text, old)}`);
  if (matches.length === MATCHES_MAX)
    throw new ToolError(
      `old occurs ${MATCHES_MAX} times or more in ${shown}, and one edit replaces fewer: give a longer passage, or use a command`,
    );
  if (matches.length > 1 && !all) {
    const lines = matches.slice(0, MATCHES_TOLD_MAX).map((match) => lineAt(text, match.from));
    const more = matches.length > MATCHES_TOLD_MAX ? ', …' : '';
    throw new ToolError(
      `old occurs ${matches.length} times in ${shown}, at lines ${lines.join(', ')}${more}: add lines around it, or set all`,
    );
  }
  return { matches, isExact: exact.length > 0 };
}
