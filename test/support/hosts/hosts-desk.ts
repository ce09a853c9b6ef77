// A fixture for runs on hosts: a repository, a scripted model, a Redis, and hosts as processes of their own.

import { join } from 'node:path';
import type { Shown } from '@drover/core/bus';
import type { Recorded } from '@drover/protocol/events';
import type { Answer, Script } from '@drover/rehearsal/script';
import { type Ended, Program } from '../../cli/program.ts';
import { planned, RunDesk, type ScriptedTask, submits, told, type RanRun } from '../run/run-desk.ts';
import { Redis, type RedisWish } from './redis.ts';

export type HostWish = {
  readonly slots?: number;
  readonly labels?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly url?: string;
  readonly home?: string;
  readonly args?: readonly string[];
  /** A program to run in place of Node, which gets its arguments. */
  readonly node?: string;
};

export class HostsDesk {
  readonly desk: RunDesk;
  readonly redis: Redis;

  private constructor(desk: RunDesk, redis: Redis) {
    this.desk = desk;
    this.redis = redis;
  }

  static async with(
    script: Script,
    { files, ...redis }: RedisWish & { readonly files?: Readonly<Record<string, string>> } = {},
  ): Promise<HostsDesk> {
    return new HostsDesk(await RunDesk.with(script, files), await Redis.start(redis));
  }

  /** A desk with a scripted model of the caller's. */
  static over(desk: RunDesk, redis: Redis): HostsDesk {
    return new HostsDesk(desk, redis);
  }

  homeOf(host: string): string {
    return join(this.desk.folder, `home of ${host}`);
  }

  /** A host that takes work. Commands run in the open: the sandbox has tests of its own. */
  async host(
    name: string,
    {
      slots = 3,
      labels = [],
      env = {},
      url = this.redis.url,
      home = this.homeOf(name),
      args = [],
      node,
    }: HostWish = {},
  ): Promise<Program> {
    const flags = ['--queue', url, '--name', name, '--slots', `${slots}`, '--sandbox', 'off'];
    const marked = labels.flatMap((label) => ['--label', label]);
    const options = { env: { DROVER_HOME: home, ...env }, ...(node !== undefined && { node }) };
    const host = new Program(['worker', ...flags, ...marked, ...args], this.desk.folder, options);
    await host.printed('takes work');
    return host;
  }

  /** drover run in this process. */
  run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<RanRun> {
    const queue = ['--queue', this.redis.url, '--sandbox', 'off', '--yes'];
    return this.desk.drover(['run', 'the goal', '--json', ...queue, ...args], { env }).then(told);
  }

  /** drover as a process that can be killed. */
  program(args: readonly string[], { env = {}, url = this.redis.url }: Pick<HostWish, 'env' | 'url'> = {}): Program {
    const { repository, home, server } = this.desk;
    const keys = { DROVER_HOME: home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url };
    const shared = ['--queue', url, '--sandbox', 'off', '--yes', '--json'];
    const model = args[0] === 'run' ? ['--model', 'anthropic/scripted'] : [];
    return new Program([...args, ...model, ...shared], repository, { env: { ...keys, ...env } });
  }
}

/** Tasks that write a file each, over two steps, the second with a shell. */
export function sixTasks(more: Partial<Script> = {}): Script {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  return planned(Object.fromEntries(ids.map((id) => [id, writingTask(id)])), more);
}

function writingTask(id: string): ScriptedTask {
  const write: Answer = { calls: [{ name: 'write', args: { path: `${id}.txt`, content: `${id}\n` } }] };
  const shell: Answer = { calls: [{ name: 'shell', args: { command: `echo more >> ${id}.txt` } }] };
  return { answers: [write, shell, submits(`did ${id}`)] };
}

/** The events in what a program has printed. */
export function eventsIn({ stdout }: Pick<Ended, 'stdout'>): readonly Shown[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Shown);
}

/** The names of hosts that took placements, in order. */
export function hostsOf(events: readonly Recorded[]): readonly string[] {
  return events.flatMap((event) => (event.type === 'placement' && event.state === 'accepted' ? [event.host.name] : []));
}
