// Environments that change a drover process from its start: another clock, or another version of drover.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('../../../package.json', import.meta.url));

type Env = Readonly<Record<string, string>>;

/** A process whose clock is set forward or back by so much once `flag` is a file. */
export function clockOff(ms: number, flag: string): Env {
  return preloaded(`
    import { existsSync } from 'node:fs';
    const Real = Date;
    const now = () => Real.now() + (existsSync(${JSON.stringify(flag)}) ? ${ms} : 0);
    globalThis.Date = class extends Real {
      constructor(...args) {
        super(...(args.length === 0 ? [now()] : args));
      }
      static now() {
        return now();
      }
    };`);
}

/** A process of another version of drover. */
export function versionOff(version: string): Env {
  return preloaded(`
    import { registerHooks } from 'node:module';
    registerHooks({
      load(url, context, next) {
        const loaded = next(url, context);
        if (!url.endsWith(${JSON.stringify(join('/', PACKAGE))})) return loaded;
        return { ...loaded, source: JSON.stringify({ ...JSON.parse(loaded.source), version: ${JSON.stringify(version)} }) };
      },
    });`);
}

/** Threads load it too. */
function preloaded(source: string): Env {
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(source)}` };
}
