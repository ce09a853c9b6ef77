// Git objects as packs on a line: what one side has and the other lacks.
//
// A pack is thin: it leaves out what the receiver says that it has. Parts of a pack are frames, so they are numbered,
// acknowledged and sent again like all others, and a transfer waits while too much of it is on its way.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { DroverError } from '@drover/core/errors';
import { gitAt, type GitPlace, gitProcess } from '@drover/coordinator/git/git';

const PART_BYTES = 256 * 1024;
const COMPLAINT_CHARS_MAX = 500;

/** Sends one part of a pack. The last one may be empty. */
export type SendPart = (part: Buffer, last: boolean) => Promise<void>;

type Wanted = {
  readonly commits: readonly string[];
  /** Commits that the receiver has. Those that are unknown here are left out. */
  readonly have: readonly string[];
};

export async function sendPackToHost(place: GitPlace, { commits, have }: Wanted, send: SendPart): Promise<void> {
  const known = await commitsKnownToHost(place, have);
  const child = startGitPack(place, ['pack-objects', '--thin', '--revs', '--stdout', '--delta-base-offset', '-q']);
  child.stdin.end([...commits, '--not', ...known].map((line) => `${line}\n`).join(''));
  const complaint = text(child.stderr);
  const ended = exitOfGitPack(child);
  let waiting: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    waiting.push(chunk);
    bytes += chunk.length;
    if (bytes < PART_BYTES) continue;
    await send(Buffer.concat(waiting), false);
    waiting = [];
    bytes = 0;
  }
  const code = await ended;
  if (code !== 0) throw gitPackFailed('pack-objects', await complaint);
  await send(Buffer.concat(waiting), true);
}

/** Takes in a pack, part by part. */
export class PackIntake {
  readonly #child: ReturnType<typeof startGitPack>;
  readonly #ended: Promise<number>;
  readonly #complaint: Promise<string>;

  constructor(place: GitPlace) {
    this.#child = startGitPack(place, ['index-pack', '--fix-thin', '--stdin']);
    this.#ended = exitOfGitPack(this.#child);
    this.#complaint = text(this.#child.stderr);
    this.#child.stdout.resume();
    // It ends with an exit code that says more.
    this.#child.stdin.on('error', () => undefined);
  }

  async take(part: Buffer): Promise<void> {
    if (!this.#child.stdin.write(part)) await Promise.race([once(this.#child.stdin, 'drain'), this.#ended]);
  }

  /** Resolves when the objects are in the store. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    if ((await this.#ended) !== 0) throw gitPackFailed('index-pack', await this.#complaint);
  }

  /** Gives up a pack that will not be completed. */
  abandon(): void {
    this.#child.kill('SIGKILL');
  }
}

/** Those of the commits that are in the store, with all that they hold. */
async function commitsKnownToHost(place: GitPlace, commits: readonly string[]): Promise<readonly string[]> {
  if (commits.length === 0) return [];
  const input = commits.map((commit) => `${commit}^{commit}\n`).join('');
  const { out } = await gitAt(place)(['cat-file', '--batch-check=%(objectname)'], { input });
  return out.split('\n').filter((line) => /^[0-9a-f]{40,64}$/.test(line));
}

function startGitPack(place: GitPlace, args: readonly string[]) {
  const { file, args: all, cwd, env } = gitProcess(place, args);
  return spawn(file, all, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
}

async function exitOfGitPack(child: ReturnType<typeof startGitPack>): Promise<number> {
  return new Promise((resolve) => {
    child.on('error', () => resolve(-1));
    child.on('close', (code) => resolve(code ?? -1));
  });
}

function gitPackFailed(command: string, complaint: string): DroverError {
  const message = complaint.trim().slice(0, COMPLAINT_CHARS_MAX) || 'it ended early';
  return new DroverError({ kind: 'git.failed', args: [command], message });
}
