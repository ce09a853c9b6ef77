// Ids: a readable prefix and 128 random bits, unique for ever and safe in file names and URLs.

import { randomBytes } from 'node:crypto';

const ID_BYTES = 16;
// Random bytes are fetched in batches, because each call to randomBytes is slow.
const IDS_AT_ONCE = 64;

export type IdPrefix = 'run' | 'ses' | 'call' | 'ask' | 'msg' | 'mcp';

let random = Buffer.alloc(0);

export function newId(prefix: IdPrefix): string {
  if (random.length === 0) random = randomBytes(ID_BYTES * IDS_AT_ONCE);
  const bits = random.toString('hex', 0, ID_BYTES);
  random = random.subarray(ID_BYTES);
  return `${prefix}_${bits}`;
}
