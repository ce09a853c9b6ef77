// Ids: a readable prefix and 128 random bits, unique for ever and safe in file names and URLs.

import { randomBytes } from 'node:crypto';

export type IdPrefix = 'run' | 'ses' | 'call' | 'ask' | 'msg';

export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomBytes(16).toString('hex')}`;
}
