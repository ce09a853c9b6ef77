// Previews the change of a write or edit call, without making it.

import { ToolError } from '../../errors.ts';
import { isJsonObject, type Json } from '@drover/protocol/json';
import { changeBetween } from './changes.ts';
import { readText } from './content.ts';
import { findExact, findTolerant } from './passage.ts';
import { writablePlace } from './paths.ts';

export type PreviewedCall = { readonly tool: string; readonly input: Json; readonly cwd: string };

/** A unified diff; undefined for other tools, and for a call that would fail. */
export async function changeOf({ tool, input, cwd }: PreviewedCall): Promise<string | undefined> {
  if (!isJsonObject(input) || typeof input['path'] !== 'string') return undefined;
  const { path } = input;
  try {
    const place = await writablePlace(path, { cwd });
    const before = await readText(place).catch((error: unknown) => {
      if (tool === 'write' && error instanceof ToolError) return { text: '', bom: '' };
      throw error;
    });
    const after = tool === 'write' ? input['content'] : tool === 'edit' ? editedText(before.text, input) : undefined;
    if (typeof after !== 'string') return undefined;
    return (await changeBetween(place.shown, before.text, after)).diff;
  } catch (error) {
    if (error instanceof ToolError) return undefined;
    throw error;
  }
}

function editedText(text: string, { old, new: replacement }: { readonly [key: string]: Json | undefined }) {
  if (typeof old !== 'string' || typeof replacement !== 'string' || old === '') return undefined;
  const exact = findExact(text, old, replacement);
  const matches = exact.length > 0 ? exact : findTolerant(text, old, replacement);
  let after = '';
  let from = 0;
  for (const match of matches) {
    after += text.slice(from, match.from) + match.replacement;
    from = match.to;
  }
  return after + text.slice(from);
}
