// Reproducible pseudo-random numbers.

/** Numbers in [0, 1), by Marsaglia's xorshift on 32 bits. */
export function randomForFaults(seed: number): () => number {
  // Zero would stay zero, and small seeds would begin alike.
  let state = (Math.imul(seed, 2_654_435_761) ^ 0x9e3779b9) | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
