// Placeholders that a killed drover left in the user's folder: the next drover removes them.
//
// A session covers protected paths that are missing with empty folders, and removes them at its end. Until then a record
// in the state folder names them. A record whose process is gone tells what is left to remove. Only empty folders go.

import { lstatSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { realOf } from '@drover/sandbox/paths';

let records = 0;

/** Names the paths that are missing now. Returns what ends the record; call it when the placeholders are gone. */
export function recordPlaceholders(state: string, paths: readonly string[]): () => void {
  const missing = paths.filter((path) => lstatSync(path, { throwIfNoEntry: false }) === undefined);
  if (missing.length === 0) return () => undefined;
  const file = join(folderIn(state), `${process.pid}-${records++}`);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, missing.map((path) => `${path}\0`).join(''), { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/** Removes what drovers that are gone have left. */
export function removeLeftPlaceholders(state: string): void {
  const folder = folderIn(state);
  for (const name of attempt(() => readdirSync(folder)) ?? []) {
    if (isRunning(Number.parseInt(name, 10))) continue;
    const file = join(folder, name);
    const paths = attempt(() => readFileSync(file, 'utf8')) ?? '';
    for (const path of paths.split('\0').slice(0, -1)) {
      // A link on the way would lead elsewhere.
      if (realOf(dirname(path)) === dirname(path)) attempt(() => rmdirSync(path));
    }
    rmSync(file, { force: true });
  }
}

function folderIn(state: string): string {
  return join(state, 'sandbox', 'placeholders');
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

// It is gone, or not empty and then the user's.
function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}
