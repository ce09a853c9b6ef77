// Runs work concurrently up to a limit, with results in input order.

const AT_ONCE = 6;

export async function sideBySide<Piece, Result>(
  pieces: readonly Piece[],
  work: (piece: Piece) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const left = [...pieces.entries()];
  const one = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return results;
}
