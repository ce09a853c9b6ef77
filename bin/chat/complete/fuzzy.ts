// Fuzzy search: a query matches a text that holds its characters in order. Better matches come first.

const MATCHES_MAX = 100;
const STARTS = /[/\\._\- ]/;

/** How well a lower-case query matches; undefined if it does not. Fewer gaps, starts of words and short texts win. */
function fuzzyScore(query: string, text: string): number | undefined {
  const lower = text.toLowerCase();
  const whole = lower.lastIndexOf(query);
  if (whole >= 0) return 1_000 + (whole === 0 || STARTS.test(lower[whole - 1] ?? '') ? 200 : 0) - text.length;
  let at = -1;
  let score = 0;
  for (const char of query) {
    const found = lower.indexOf(char, at + 1);
    if (found < 0) return undefined;
    if (found === at + 1) score += 8;
    if (found === 0 || STARTS.test(lower[found - 1] ?? '')) score += 10;
    at = found;
  }
  return score - text.length / 10;
}

/** The best matches, at most a hundred. An empty query matches everything in its order. */
export function searchFuzzy<Item>(
  query: string,
  items: readonly Item[],
  textOf: (item: Item) => string,
): readonly Item[] {
  if (query === '') return items.slice(0, MATCHES_MAX);
  const lower = query.toLowerCase();
  const scored: { readonly item: Item; readonly score: number }[] = [];
  for (const item of items) {
    const score = fuzzyScore(lower, textOf(item));
    if (score !== undefined) scored.push({ item, score });
  }
  return scored
    .sort((a, b) => b.score - a.score)
    .slice(0, MATCHES_MAX)
    .map(({ item }) => item);
}
