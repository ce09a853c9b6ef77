// Files that are not small regular files. A plain read of one hangs, never ends or leaks.

import { constants } from 'node:fs';
import { mkdir, open, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { onTestFinished } from 'vitest';
import { runSync } from '../process/run-sync.ts';

type OddFile = {
  readonly name: string;
  /** Creates the file at the path. */
  readonly make: (path: string) => Promise<unknown>;
  /** The part of an error message that names the kind of file. */
  readonly problem: string;
};

/** Long enough for a slow machine, far too short for a hang. */
export const HANG_MS = 10_000;

export const ODD_FILES: readonly OddFile[] = [
  { name: 'a pipe', make: makePipe, problem: 'is a pipe, not a regular file' },
  { name: 'a socket', make: makeSocket, problem: 'is a socket or a device, not a regular file' },
  { name: 'an endless device', make: (path) => symlink('/dev/zero', path), problem: 'is a device, not a regular file' },
  { name: 'a descriptor of a pipe', make: linkToDescriptor, problem: 'is a pipe, not a regular file' },
  { name: 'a folder', make: (path) => mkdir(path), problem: 'is a folder, not a regular file' },
  {
    name: 'a dangling link',
    make: (path) => symlink('nowhere', path),
    problem: 'is a link to a file that does not exist',
  },
  { name: 'a loop of links', make: (path) => symlink(path, path), problem: 'is a loop of links' },
];

export const LARGE_FILE: OddFile = {
  name: 'a file of 2 MB',
  make: (path) => writeFile(path, '#'.repeat(2 * 1024 * 1024)),
  problem: 'is larger than 1 MB',
};

export const LINK_OUT: OddFile = {
  name: 'a link to /etc/passwd',
  make: (path) => symlink('/etc/passwd', path),
  problem: 'is a link that leads out of the repository',
};

export async function makePipe(path: string): Promise<void> {
  runSync('mkfifo', [path], { cwd: '/' });
}

async function makeSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
}

/** A pipe, which /dev/stdin is when standard input is piped. */
async function linkToDescriptor(path: string): Promise<void> {
  await makePipe(`${path}.pipe`);
  const pipe = await open(`${path}.pipe`, constants.O_RDWR | constants.O_NONBLOCK);
  await rm(`${path}.pipe`);
  onTestFinished(() => pipe.close());
  await symlink(`/proc/self/fd/${pipe.fd}`, path);
}
