// Names of served tools: mcp__server__tool, in the form that every provider accepts.

import { createHash } from 'node:crypto';

export const SERVED_PREFIX = 'mcp__';

const NAME_CHARS_MAX = 64;
const HASH_CHARS = 8;

/** Two tools get two names: a name that had to be changed ends with a hash of the original. */
export function servedName(server: string, tool: string): string {
  const whole = `${SERVED_PREFIX}${server}__${tool}`;
  const plain = whole.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  if (plain === whole && whole.length <= NAME_CHARS_MAX) return whole;
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, HASH_CHARS);
  return `${plain.slice(0, NAME_CHARS_MAX - HASH_CHARS - 1)}_${hash}`;
}
