// Fuzzy search of menus in a chat: which match comes first.

import { expect, test } from 'vitest';
import { fuzzy } from '../../../bin/chat/complete/fuzzy.ts';

test('whole matches come before scattered ones, at the start of a word first, short ones first', () => {
  const paths = ['c/h/a/t.ts', 'src/achat.ts', 'src/chat-input.ts', 'src/chat.ts', 'none.md'];
  expect(fuzzy('chat', paths, (path) => path)).toEqual([
    'src/chat.ts',
    'src/chat-input.ts',
    'src/achat.ts',
    'c/h/a/t.ts',
  ]);
});
