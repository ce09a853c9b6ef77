// Counts the bytes that this process reads of a file, for tests of what is read how often.

import fs from 'node:fs';
import files, { type FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';

/** Bytes read of the file from now on, through any function of node:fs that drover reads with. Returns the count. */
export function countReads(path: string): () => number {
  const { readFile, open } = files;
  const { readFileSync } = fs;
  let bytes = 0;
  const counted = <Read extends { readonly length: number }>(name: unknown, read: Read): Read => {
    if (name === path) bytes += read.length;
    return read;
  };
  files.readFile = (async (...[name, options]: Parameters<typeof readFile>) =>
    counted(name, await readFile(name, options))) as typeof readFile;
  fs.readFileSync = ((...[name, options]: Parameters<typeof readFileSync>) =>
    counted(name, readFileSync(name, options))) as typeof readFileSync;
  files.open = async (...args) => {
    const file = await open(...args);
    return args[0] === path ? counting(file, (read) => (bytes += read)) : file;
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    Object.assign(files, { readFile, open });
    Object.assign(fs, { readFileSync });
    syncBuiltinESMExports();
  });
  return () => bytes;
}

function counting(file: FileHandle, onRead: (bytes: number) => void): FileHandle {
  const read = file.read.bind(file) as (...args: readonly unknown[]) => Promise<{ readonly bytesRead: number }>;
  const readAndCount = async (...args: readonly unknown[]) => {
    const result = await read(...args);
    onRead(result.bytesRead);
    return result;
  };
  return Object.assign(file, { read: readAndCount });
}
