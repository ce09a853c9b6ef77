// edit: replaces a passage of a file.
//
// The tool looks for the exact passage, then ignores differences in white space (see files/passage.ts). The passage
// must occur once unless `all` is set, because a guess could change the wrong place. Line ends and the byte order
// mark are preserved.

import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { fileChangeBetween, fileChangeSize } from './files/changes.ts';
import { readToolFileText, replaceToolFile } from './files/content.ts';
import {
  findExactPassage,
  findTolerantPassage,
  passageLineAt,
  type Match,
  MATCHES_MAX,
  nearestPassageLine,
} from './files/passage.ts';
import { oneFileChangeAtATime, type Place, tidyToolPath, writableToolPath } from './files/paths.ts';
import { defineTool, type ToolOutput } from './tool.ts';

const MATCHES_TOLD_MAX = 10;

type Passage = { readonly old: string; readonly new: string; readonly all?: boolean | undefined };

export const edit = defineTool({
  name: 'edit',
  description:
    'Replace the passage `old` of a file by `new`. `old` must occur once (add lines around it) unless `all`.',
  input: z.strictObject({ path: z.string(), old: z.string(), new: z.string(), all: z.optional(z.boolean()) }),
  access: 'write',
  subject: ({ path }) => tidyToolPath(path),
  touches: ({ path }) => [tidyToolPath(path)],
  async run({ path, ...passage }, context) {
    if (passage.old === '') throw new ToolError('old is empty: to make or replace a whole file, use write');
    if (passage.old === passage.new) throw new ToolError('old and new are the same');
    const place = await writableToolPath(path, context);
    return oneFileChangeAtATime(place.real, () => replacePassageByTool(place, passage));
  },
});

async function replacePassageByTool(place: Place, passage: Passage): Promise<ToolOutput> {
  const { text, bom } = await readToolFileText(place);
  const { matches, isExact } = editToolMatches(text, place, passage);
  let after = '';
  let from = 0;
  for (const match of matches) {
    after += text.slice(from, match.from) + match.replacement;
    from = match.to;
  }
  after += text.slice(from);
  if (after === text) throw new ToolError(`${place.shown} would not change`);

  await replaceToolFile(place, bom + after);
  const change = await fileChangeBetween(place.shown, text, after);
  const how = isExact ? '' : ', found with different white space';
  const many = matches.length === 1 ? '' : `, ${matches.length} places`;
  return {
    output: `edited ${place.shown} (${fileChangeSize(change)}${many}${how})${change.diff === undefined ? '' : `\n${change.diff}`}`,
    details: { path: place.shown, ...change },
  };
}

function editToolMatches(
  text: string,
  { shown }: Place,
  { old, new: replacement, all = false }: Passage,
): { readonly matches: readonly Match[]; readonly isExact: boolean } {
  const exact = findExactPassage(text, old, replacement);
  const matches = exact.length > 0 ? exact : findTolerantPassage(text, old, replacement);
  if (matches.length === 0) throw new ToolError(`old was not found in ${shown}${nearestPassageLine(text, old)}`);
  if (matches.length === MATCHES_MAX)
    throw new ToolError(
      `old occurs ${MATCHES_MAX} times or more in ${shown}, and one edit replaces fewer: give a longer passage, or use a command`,
    );
  if (matches.length > 1 && !all) {
    const lines = matches.slice(0, MATCHES_TOLD_MAX).map((match) => passageLineAt(text, match.from));
    const more = matches.length > MATCHES_TOLD_MAX ? ', …' : '';
    throw new ToolError(
      `old occurs ${matches.length} times in ${shown}, at lines ${lines.join(', ')}${more}: add lines around it, or set all`,
    );
  }
  return { matches, isExact: exact.length > 0 };
}
