// Placeholders that a killed drover left in the user's folder: the next drover removes them.
//
// A session covers protected paths that are missing with empty folders, and removes them at its end. Until then a
// record in the state folder names them. A record whose process is gone tells what is left to remove. Only empty
// folders go.
//
// Two sessions in one folder: the second may make a placeholder inside one of the first. So a record whose folders
// could not be removed stays, and every session that ends tries again. After a day the folders count as the user's.

import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { realPathForSandbox } from '@drover/sandbox/paths';

const KEPT_MS_MAX = 24 * 3_600_000;
const ENDED = 'ended-'; // instead of a running process

let records = 0;

/** Names the paths that are missing now. Returns what ends the record; call it when the session has ended. */
export function recordPlaceholders(state: string, paths: readonly string[]): () => void {
  const missing = paths.filter((path) => lstatSync(path, { throwIfNoEntry: false }) === undefined);
  if (missing.length === 0) return () => removeLeftPlaceholders(state);
  const file = join(placeholdersFolder(state), `${process.pid}-${records++}`);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, missing.map((path) => `${path}\0`).join(''), { mode: 0o600 });
  return () => {
    tryPlaceholderStep(() => renameSync(file, join(dirname(file), `${ENDED}${process.pid}-${records++}`)));
    removeLeftPlaceholders(state);
  };
}

/** Removes what sessions that are over have left. */
export function removeLeftPlaceholders(state: string): void {
  const folder = placeholdersFolder(state);
  const names = tryPlaceholderStep(() => readdirSync(folder)) ?? [];
  const left = names
    .filter((name) => !isPlaceholderOwnerRunning(Number.parseInt(name, 10)))
    .map((name) => join(folder, name))
    .map((file) => ({ file, paths: readPlaceholderPaths(file) }));
  // Inner paths come before outer ones.
  const paths = left.flatMap((record) => record.paths).toSorted((a, b) => b.length - a.length);
  for (const path of paths) removeEmptyPlaceholder(path);
  for (const record of left)
    if (!record.paths.some(isPlaceholderFolder) || isOldPlaceholderFile(record.file))
      rmSync(record.file, { force: true });
}

function readPlaceholderPaths(file: string): readonly string[] {
  return (tryPlaceholderStep(() => readFileSync(file, 'utf8')) ?? '').split('\0').slice(0, -1);
}

/** A link on the way would lead elsewhere. */
function removeEmptyPlaceholder(path: string): void {
  if (realPathForSandbox(dirname(path)) === dirname(path)) tryPlaceholderStep(() => rmdirSync(path));
}

function isPlaceholderFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isOldPlaceholderFile(file: string): boolean {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined || Date.now() - found.mtimeMs > KEPT_MS_MAX;
}

function placeholdersFolder(state: string): string {
  return join(state, 'sandbox', 'placeholders');
}

function isPlaceholderOwnerRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

// It is gone, or not empty and then the user's.
function tryPlaceholderStep<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}
