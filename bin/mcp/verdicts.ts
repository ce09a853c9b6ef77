// How servers were found to speak, on disk: the next start need not probe them again.
//
// A verdict counts for a week. One that does not hold any more is replaced by the next connection.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import type { BrokerOptions } from '@drover/mcp/broker';

const KEPT_MS = 7 * 24 * 3_600_000;
const VERDICTS_MAX = 200;

/** The verdicts in `home`. `now` is for tests. */
export function openServerVerdicts(home: string, now: () => number = Date.now): BrokerOptions['priorsOf'] {
  const file = join(home, 'mcp', 'verdicts.json');
  return ({ reach }) => {
    const key = createHash('sha256').update(JSON.stringify(reach)).digest('hex');
    return {
      get: () => {
        const kept = readServerVerdicts(file)[key];
        if (!isJsonObject(kept ?? null) || !isJsonObject(kept)) return undefined;
        const { at, prior } = kept;
        return typeof at === 'number' && now() - at < KEPT_MS ? (prior as never) : undefined;
      },
      set: (prior) => {
        const before = readServerVerdicts(file);
        const kept = before[key];
        if (isJsonObject(kept ?? null) && JSON.stringify((kept as JsonObject)['prior']) === JSON.stringify(prior))
          return;
        const others = Object.entries(before).filter(([each]) => each !== key);
        const all = [...others, [key, { at: now(), prior }]].slice(-VERDICTS_MAX);
        writeServerVerdicts(file, Object.fromEntries(all) as Json);
      },
    };
  };
}

function readServerVerdicts(file: string): JsonObject {
  try {
    const found = JSON.parse(readFileSync(file, 'utf8')) as Json;
    return isJsonObject(found) ? found : {};
  } catch (error) {
    // Not there yet, or cut off: the servers are asked again.
    if (error instanceof SyntaxError || (error instanceof Error && 'code' in error)) return {};
    throw error;
  }
}

function writeServerVerdicts(file: string, verdicts: Json): void {
  mkdirSync(dirname(file), { recursive: true });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, JSON.stringify(verdicts));
  renameSync(fresh, file);
}
