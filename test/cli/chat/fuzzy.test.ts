// Fuzzy search of menus in a chat: which match comes first.

import { expect, test } from 'vitest';
import { searchFuzzy } from '../../../bin/chat/complete/fuzzy.ts';

test('whole matches come first, then starts of words, then short texts', () => {
  const paths = ['c/h/a/t.ts', 'src/achat.ts', 'src/chat-input.ts', 'src/chat.ts', 'none.md'];
  expect(searchFuzzy('chat', paths, (path) => path)).toEqual([
    'src/chat.ts',
    'src/chat-input.ts',
    'src/achat.ts',
    'c/h/a/t.ts',
  ]);
});
