// "Did you mean …?": the known word nearest to a mistyped one.

const WORD_CHARS_MAX = 64;

/** Returns a suffix for a sentence: `; did you mean --model?`, or nothing if no word is near. */
export function suggestNearestWord(word: string, known: readonly string[], prefix = ''): string {
  const near = nearestKnownWord(word, known);
  return near === undefined ? '' : `; did you mean ${prefix}${near}?`;
}

/** One slip is tolerated in short words, two or three in longer ones. */
export function nearestKnownWord(word: string, known: readonly string[]): string | undefined {
  const typed = word.slice(0, WORD_CHARS_MAX).toLowerCase();
  const ranked = known
    .map((candidate) => ({ candidate, distance: wordDistance(typed, candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.min(3, Math.ceil(candidate.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function wordDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1;
      let best = Math.min(
        wordDistanceAt(last, column) + 1,
        wordDistanceAt(current, column - 1) + 1,
        wordDistanceAt(last, column - 1) + change,
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) best = Math.min(best, wordDistanceAt(beforeLast, column - 2) + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return wordDistanceAt(last, b.length);
}

function wordDistanceAt(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
