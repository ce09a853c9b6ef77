// The hosts of a run: checked before anything is spent, and opened with the run.
//
// Only a run with --queue loads what talks to Redis.

import { join } from 'node:path';
import type { Fleet } from '@drover/hosts/placing/fleet';
import type { HostedOptions } from '@drover/hosts/placing/hosted-workspaces';
import type { PresentHost } from '@drover/hosts/presence';
import type { Repository } from '@drover/coordinator/git/repository';
import type { Slots, Workspaces } from '@drover/coordinator/slots/slots';
import { UsageError } from '@drover/core/errors';
import type { Diagnose } from '@drover/core/diagnosis';
import type { PlannedTask } from '@drover/protocol/plan';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import type { RunArgs } from '../run/run-options.ts';
import type { Settings } from '../start/settings.ts';

const QUEUE_KEY = 'DROVER_QUEUE_KEY';
/** Limit of a first transfer to a host. */
const REPOSITORY_MB_MAX = 1_024;

/** Where a run places its tasks. */
export type HostsWish = {
  readonly url: string;
  readonly key: string | undefined;
  readonly local: number; // tasks on this machine at once
};

/** Throws UsageError for flags that do not fit together. */
export function readHostsWish(
  args: Pick<RunArgs, 'queue' | 'local'>,
  { env }: Pick<Settings, 'env'>,
): HostsWish | undefined {
  const { queue: url, local } = args;
  if (url === undefined && local !== undefined)
    throw new UsageError('--local says how many tasks run here besides those on hosts: give --queue as well');
  return url === undefined ? undefined : { url, key: env[QUEUE_KEY], local: local ?? 0 };
}

export type CheckedRun = {
  readonly repository: Repository;
  readonly base: string;
  readonly tasks: readonly PlannedTask[];
  readonly env: Settings['env'];
};

/** Returns how many tasks the hosts can do at once. Throws UsageError if the run could not work with this queue. */
export async function checkHosts(wish: HostsWish, run: CheckedRun): Promise<number> {
  const { checkRedisQueue: checkQueue } = await import('@drover/hosts/line/redis');
  await checkQueue(wish);
  const version = await ownVersion();
  const all = await listHostsAtQueue(wish);
  checkHostVersions(all, version);
  const hosts = all.filter((host) => host.version === version);
  checkHostLabels(hosts, run.tasks);
  await checkRepositorySizeForHosts(run);
  return hosts.reduce((sum, { slots }) => sum + slots, 0);
}

/** The hosts that are there. Throws UsageError if they use another key. */
export async function listHostsAtQueue(wish: Pick<HostsWish, 'url' | 'key'>): Promise<readonly PresentHost[]> {
  const [{ connectRedis: connect, isRedisReady: isReady }, { Signer }, { listHosts }] = await Promise.all([
    import('@drover/hosts/line/redis'),
    import('@drover/hosts/line/signature'),
    import('@drover/hosts/presence'),
  ]);
  const redis = connect(wish);
  try {
    await isReady(redis);
    const { hosts, unsigned } = await listHosts(redis, new Signer(wish.key));
    if (hosts.length === 0 && unsigned > 0)
      throw new UsageError(
        `${unsigned} hosts are at this queue, and none is signed with your key: set ${QUEUE_KEY} to the same text here and there`,
      );
    return hosts;
  } finally {
    redis.disconnect();
  }
}

function checkHostVersions(hosts: readonly PresentHost[], own: string): void {
  if (hosts.length === 0 || hosts.some(({ version }) => version === own)) return;
  const versions = [...new Set(hosts.map(({ version }) => version))].join(' and ');
  throw new UsageError(
    `the hosts at this queue run drover ${versions}, and this one is ${own}: install the same version on both sides`,
  );
}

/** The version of drover. Only hosts of the same one are given work. */
export async function ownVersion(): Promise<string> {
  return (await import('../../package.json', { with: { type: 'json' } })).default.version;
}

function checkHostLabels(hosts: readonly PresentHost[], tasks: readonly PlannedTask[]): void {
  if (hosts.length === 0) return; // they may come
  for (const { id, runsOn = [] } of tasks) {
    if (hosts.some(({ labels }) => runsOn.every((label) => labels.includes(label)))) continue;
    const flags = runsOn.map((label) => `--label ${label}`).join(' ');
    throw new UsageError(
      `task ${id} runs on ${runsOn.join(', ')}, and no host has ${runsOn.length > 1 ? 'these labels' : 'this label'}: start one with drover worker --queue … ${flags}`,
    );
  }
}

async function checkRepositorySizeForHosts({ repository, base, env }: CheckedRun): Promise<void> {
  const { gitOfRepository: gitOf } = await import('@drover/coordinator/git/repository');
  const git = gitOf(repository, childProcessEnvironment(env));
  const { out } = await git(['rev-list', '--objects', '--disk-usage', base]);
  const mb = Number(out.trim()) / 1024 / 1024;
  if (mb > REPOSITORY_MB_MAX)
    throw new UsageError(
      `the history of this repository has ${Math.round(mb)} MB, and a host would get at most ${REPOSITORY_MB_MAX} MB of it: work in a clone with less history (git clone --depth 1)`,
    );
}

/** The remote of a repository, without credentials in it; undefined if no host could fetch from there. */
export async function findRemote(repository: Repository, env: Settings['env']): Promise<string | undefined> {
  const { gitOfRepository } = await import('@drover/coordinator/git/repository');
  const git = gitOfRepository(repository, childProcessEnvironment(env));
  const { out } = await git(['config', '--get', 'remote.origin.url'], { accept: [1] });
  const remote = out.trim();
  if (!/^(https:\/\/|ssh:\/\/|\/|[\w.-]+@[\w.-]+:)/.test(remote)) return undefined;
  return remote.replace(/^(https:\/\/)[^/@]*@/, '$1');
}

export type HostedRun = {
  readonly id: string;
  readonly slots: Slots;
  readonly local: number;
} & Pick<HostedOptions, 'startedAt' | 'env' | 'repository' | 'asked' | 'settled' | 'tell' | 'records'>;

/** Loads what makes the workspaces of a run with hosts. */
export async function loadHostedWorkspaces(): Promise<(fleet: Fleet, run: HostedRun) => Workspaces> {
  const { HostedWorkspaces, withLocalWorkspaces: withLocal } = await import('@drover/hosts/placing/hosted-workspaces');
  return (fleet, { id, slots, local, ...rest }) => {
    const hosted = new HostedWorkspaces({ ...rest, run: id, fleet, store: slots.store });
    return withLocal(slots, local, { take: (wish) => hosted.take(wish), again: (wish) => hosted.again(wish) });
  };
}

export async function openFleet(wish: HostsWish, run: string, onDiagnostic: Diagnose): Promise<Fleet> {
  const { Fleet } = await import('@drover/hosts/placing/fleet');
  const fleet = new Fleet(wish, { run, version: await ownVersion(), onDiagnostic });
  await fleet.opened();
  return fleet;
}

/** The folder with what a host keeps of the repositories it works on. */
export function hostsFolder(home: string): string {
  return join(home, 'hosts');
}
