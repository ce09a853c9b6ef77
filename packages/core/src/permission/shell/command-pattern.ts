// Shell rule patterns, compared word by word with one simple command.
//
//   1. The pattern of shell(pnpm test*) is split at spaces. Each part is compared with the word in the same position.
//   2. `*` is any text within one word: shell(npm run *) does not match `npm runx`.
//   3. A last part that ends in `*` also covers further words: shell(git log*) matches `git log -5` and `git logx`.
//   4. A quoted argument is one word: shell(echo a b) does not match `echo "a b"`.
//
// Allow rules are narrow: every part needs a word, and only a `*` at the end covers further words.
// Deny and ask rules are broad: they ignore case, always cover further words, and a last `*` may match no word.

import { doesRuleWildcardMatch } from '../rules.ts';

/** The words of a command; undefined for a word that the shell computes. */
export type Words = readonly (string | undefined)[];

/** Number of words of a command that a deny or ask rule compares. */
export const COMPARED_WORDS_MAX = 64;

/** Whether an allow rule covers the command. */
export function shellPatternCovers(pattern: string, words: readonly string[]): boolean {
  const parts = partsOfShellPattern(pattern);
  const isLongEnough = pattern.endsWith('*') ? words.length >= parts.length : words.length === parts.length;
  return isLongEnough && parts.every((part, at) => doesRuleWildcardMatch(part, words[at] ?? ''));
}

/** Whether a deny or ask rule applies to the command; `maybe` if that depends on a computed word. */
export function shellPatternHoldsFor(pattern: string, words: Words): 'yes' | 'maybe' | 'no' {
  const parts = partsOfShellPattern(pattern.toLowerCase()).slice(0, COMPARED_WORDS_MAX);
  for (const [at, part] of parts.entries()) {
    if (part === '*' && at === parts.length - 1) return 'yes';
    if (at >= words.length) return 'no';
    const word = words[at];
    if (word === undefined) return 'maybe';
    if (!doesRuleWildcardMatch(part, word.toLowerCase())) return 'no';
  }
  return 'yes';
}

function partsOfShellPattern(pattern: string): readonly string[] {
  return pattern.split(/\s+/);
}
