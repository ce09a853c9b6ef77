// Describes a change of a text: a unified diff, and the number of added and removed lines.

const DIFF_CONTEXT_LINES = 3;
// Texts with more differences get no diff: it would take minutes.
const DIFF_LINES_MAX = 3_000;

/** `diff` is absent if the texts differ too much. */
export type Change = { readonly diff?: string; readonly added: number; readonly removed: number };

export async function fileChangeBetween(path: string, before: string, after: string): Promise<Change> {
  // Imported lazily, because it would slow every start.
  const { structuredPatch } = await import('diff');
  const [old, now] = [before, after].map((text) => text.replaceAll('\r\n', '\n')) as [string, string];
  const options = { context: DIFF_CONTEXT_LINES, maxEditLength: DIFF_LINES_MAX };
  const patch = structuredPatch(path, path, old, now, undefined, undefined, options);
  if (patch === undefined) return { added: fileLineCount(now), removed: fileLineCount(old) };

  const lines = patch.hunks.flatMap((hunk) => [
    `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    ...hunk.lines,
  ]);
  const changed = patch.hunks.flatMap((hunk) => hunk.lines);
  return {
    diff: [`--- a/${path}`, `+++ b/${path}`, ...lines].join('\n'),
    added: changed.filter((line) => line.startsWith('+')).length,
    removed: changed.filter((line) => line.startsWith('-')).length,
  };
}

export function fileLineCount(text: string): number {
  if (text === '') return 0;
  const breaks = text.split('\n').length;
  return text.endsWith('\n') ? breaks - 1 : breaks;
}

/** Formats a change as "+3 -1". */
export function fileChangeSize({ added, removed }: Change): string {
  return `+${added} -${removed}`;
}
