// Fuzzy search of menus in a chat: which match comes first.

import { expect, test } from 'vitest';
import { fuzzy } from '../../../bin/chat/complete/fuzzy.ts';

test('whole matches come first, then starts of words, then short texts', () => {
  const paths = ['c/h/a/t.ts', 'src/achat.ts', 'src/chat-input.ts', 'src/chat.ts', 'none.md'];
  expect(fuzzy('chat', paths, (path) => path)).toEqual([
    'src/chat.ts',
    'src/chat-input.ts',
    'src/achat.ts',
    'c/h/a/t.ts',
  ]);
});
