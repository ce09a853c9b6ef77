// Preview of an edit: its diff with line numbers, above the question whether it may run.

import { previewFileChange } from '@drover/core/tools/files/preview';
import type { Style } from '../../views/text/style.ts';
import type { Preview } from '../../terminal/person.ts';
import { formatNumberedDiff } from './numbered-diff.ts';

export type PreviewLooks = { readonly style: Style; readonly columns: () => number };

export function previewChangeInChat(cwd: string, { style, columns }: PreviewLooks): Preview {
  return async ({ tool, input }) => {
    const diff = await previewFileChange({ tool, input, cwd });
    return diff === undefined ? '' : formatNumberedDiff(diff, { style, columns: columns() });
  };
}
