// A scene for faults of a run on hosts: one task whose third answer the model holds back until the test lets it go.
//
// Every call of the task leaves a line in a file outside its workspace, so a call that runs twice is seen.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Shown } from '@drover/core/bus';
import { startRehearsal } from '@drover/rehearsal/server';
import type { Answer } from '@drover/rehearsal/script';
import { expect, onTestFinished } from 'vitest';
import type { Program } from '../../cli/program.ts';
import { processesWith } from '../../cli/program.ts';
import { calls, planned, RunDesk, submits, writes } from '../run/run-desk.ts';
import { temporaryFolder } from '../workspace.ts';
import { eventsIn, hostsOf, HostsDesk } from './hosts-desk.ts';
import { Redis, type RedisWish } from './redis.ts';

const WORDS = ['two', 'three', 'four'];
const HELD = 4; // the request with this number: after the plan, the first call and the second one
/** The plan, five answers of the worker, and the last words of the coordinator. */
const REQUESTS = 7;

/** The tree that a run on one machine delivers. */
export const WHOLE = { 'a.txt': 'one', 'one.txt': ['one', ...WORDS].join('\n') };

export type Expected = {
  /** The hosts that took the task, in order. */
  readonly hosts: readonly string[];
  /** Answers that were asked for again. */
  readonly again?: number;
  /** Default: the whole one. */
  readonly tree?: Readonly<Record<string, string>>;
};

export class Scene {
  readonly hosts: HostsDesk;
  readonly #effects: string;
  readonly #letGo: () => void;
  #brokenAt = 0;

  private constructor(hosts: HostsDesk, effects: string, letGo: () => void) {
    this.hosts = hosts;
    this.#effects = effects;
    this.#letGo = letGo;
  }

  static async open(redis: RedisWish = {}): Promise<Scene> {
    const folder = await temporaryFolder();
    const effects = join(folder, 'effects');
    const held = Promise.withResolvers<void>();
    const shell = (word: string): Answer =>
      calls('shell', { command: `echo ${word} >> one.txt; echo ${word} >> '${effects}'` });
    const script = planned({
      held: { answers: [writes('one.txt', 'one\n'), ...WORDS.map((word) => shell(word)), submits('did it')] },
    });
    const onRequest = async ({ n }: { readonly n: number }) => {
      if (n === HELD) await held.promise;
      return undefined;
    };
    const server = await startRehearsal(script, { onRequest });
    onTestFinished(() => server.close());
    const desk = await RunDesk.in(folder, server, { 'a.txt': 'one\n' });
    return new Scene(HostsDesk.over(desk, await Redis.start(redis)), effects, held.resolve);
  }

  /** Resolves when the model has the request that it holds back, and the run has all before it. */
  async holds(): Promise<void> {
    await this.hosts.desk.server.received(HELD);
  }

  /** The fault begins now: figures count from here. */
  breaks(): void {
    this.#brokenAt = performance.now();
  }

  letGo(): void {
    this.#letGo();
  }

  /** Checks the end of the run: the tree, the effects, the answers, the hosts, and that nothing is left. */
  async expectWhole(
    run: Program,
    { hosts, again = 0, tree = WHOLE }: Expected,
    left: readonly Program[],
  ): Promise<readonly Shown[]> {
    const ended = await run.ended();
    const ms = performance.now() - this.#brokenAt;
    const { desk, redis } = this.hosts;
    const events = eventsIn(ended);
    const id = events[0]?.run ?? '';
    const end = events.findLast((event) => event.type === 'run_end');
    expect(ended.stderr).toBe('');
    expect(end?.tasks.map(({ status, attempts }) => ({ status, attempts }))).toEqual([
      { status: 'landed', attempts: 1 },
    ]);
    expect(desk.delivered(id)).toEqual(tree);
    expect((await readFile(this.#effects, 'utf8')).trim().split('\n')).toEqual(WORDS);
    expect(desk.server.requests.length).toBe(REQUESTS + again);
    expect(hostsOf(events)).toEqual(hosts);
    for (const host of left) {
      host.child.kill('SIGTERM');
      expect((await host.ended()).code).toBe(0);
    }
    expect(redis.keys()).toEqual([]);
    expect(processesWith(desk.folder).filter((pid) => pid !== `${process.pid}`)).toEqual([]);
    const { currentTestName = '' } = expect.getState();
    const moves = events.filter(({ type }) => type === 'attempt_moved').length;
    process.stdout.write(
      `${currentTestName}: ended ${(ms / 1_000).toFixed(1)} s after the fault began, ${moves} moves, ${again} answers again\n`,
    );
    return events;
  }
}
