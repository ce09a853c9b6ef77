// /diff and /undo: what the session has changed in the folder, and how the last turn's changes are taken back.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileChangeBetween } from '@drover/core/tools/files/changes';
import { textStyle } from '../../views/text/style.ts';
import { formatNumberedDiff } from '../output/numbered-diff.ts';
import type { Chat } from './slash.ts';
import { bestEffort } from '@drover/core/promises';

const FILES_NAMED_MAX = 5;

export async function undoChatTurn({ talk, say }: Chat): Promise<void> {
  if (talk.undo === undefined) return say('there is no turn to undo');
  const paths = await talk.undo.undo();
  const more = paths.length - FILES_NAMED_MAX;
  const named = `${paths.slice(0, FILES_NAMED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  talk.note(`[The user has undone the changes of a turn. These files are as they were before it: ${named}]`);
  await say(`undone: ${named}`);
}

export async function showChatDiff({ talk, cwd, say, print, columns, surroundings }: Chat): Promise<void> {
  const originals = (await talk.undo?.originals()) ?? new Map<string, string | undefined>();
  const style = textStyle(surroundings.io.stdout, surroundings.io.env);
  let isEmpty = true;
  for (const [path, before] of originals) {
    // An unreadable file is shown as deleted.
    const now = await bestEffort(readFile(join(cwd, path), 'utf8'));
    if (now === before) continue;
    isEmpty = false;
    const { diff = '', added, removed } = await fileChangeBetween(path, before ?? '', now ?? '');
    await say(`${path} (+${added} -${removed})`);
    print(formatNumberedDiff(diff, { style, columns }));
  }
  if (isEmpty) await say('this session has changed no files');
}
