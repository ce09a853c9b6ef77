// Previews the change of a write or edit call, without making it.

import { ToolError } from '../../errors.ts';
import { isJsonObject, type Json } from '@drover/protocol/json';
import { fileChangeBetween } from './changes.ts';
import { readToolFileText } from './content.ts';
import { findExactPassage, findTolerantPassage } from './passage.ts';
import { writableToolPath } from './paths.ts';

export type PreviewedCall = { readonly tool: string; readonly input: Json; readonly cwd: string };

/** A unified diff; undefined for other tools, and for a call that would fail. */
export async function previewFileChange({ tool, input, cwd }: PreviewedCall): Promise<string | undefined> {
  if (!isJsonObject(input) || typeof input['path'] !== 'string') return undefined;
  const { path } = input;
  try {
    const place = await writableToolPath(path, { cwd });
    const before = await readToolFileText(place).catch((error: unknown) => {
      if (tool === 'write' && error instanceof ToolError) return { text: '', bom: '' };
      throw error;
    });
    const after =
      tool === 'write' ? input['content'] : tool === 'edit' ? previewEditedFile(before.text, input) : undefined;
    if (typeof after !== 'string') return undefined;
    return (await fileChangeBetween(place.shown, before.text, after)).diff;
  } catch (error) {
    if (error instanceof ToolError) return undefined;
    throw error;
  }
}

function previewEditedFile(text: string, { old, new: replacement }: { readonly [key: string]: Json | undefined }) {
  if (typeof old !== 'string' || typeof replacement !== 'string' || old === '') return undefined;
  const exact = findExactPassage(text, old, replacement);
  const matches = exact.length > 0 ? exact : findTolerantPassage(text, old, replacement);
  let after = '';
  let from = 0;
  for (const match of matches) {
    after += text.slice(from, match.from) + match.replacement;
    from = match.to;
  }
  return after + text.slice(from);
}
