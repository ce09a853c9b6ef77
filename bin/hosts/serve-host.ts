// A host as a process: opens its sandbox, threads and queue, and works until it is stopped.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { Host } from '@drover/hosts/serving/host';
import { checkRedisQueue, redisAddressWithoutPassword } from '@drover/hosts/line/redis';
import type { Order } from '@drover/hosts/messages';
import { Refusal } from '@drover/hosts/serving/placed-task';
import type { Contain } from '@drover/coordinator/slots/containment';
import type { NetworkEvent } from '@drover/protocol/events';
import { endAllChildProcesses } from '@drover/core/tools/process/child';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { openDiagnostics } from '../diagnostics.ts';
import { type Io, print } from '../io.ts';
import { openLauncher } from '../run/open-launcher.ts';
import { openRunWorkers } from '../run/running.ts';
import { openContainment } from '../sandbox/containment.ts';
import { type HostName, parseSandboxHost } from '../sandbox/hosts-and-modes.ts';
import { type SandboxArgs, readSandboxWish, type SandboxWish } from '../sandbox/sandbox-options.ts';
import { exitCode } from '../start/exit-code.ts';
import { loadSettings, type Settings } from '../start/settings.ts';
import { watchForStopSignal } from '../stop.ts';
import { hostsFolder, ownVersion } from './open-fleet.ts';

const ID_BYTES = 6;

export type HostArgs = SandboxArgs & {
  readonly queue: string;
  readonly key: string | undefined;
  readonly slots: number;
  readonly labels: readonly string[];
  readonly fetches: boolean;
  readonly name: string | undefined;
  readonly log: string | undefined;
};

export async function serveHost(args: HostArgs, io: Io): Promise<number> {
  const settings = await loadSettings(io, io.cwd);
  const queue = { url: args.queue, key: args.key };
  await checkRedisQueue(queue);
  const contain = await openHostContainment(args, settings, io);
  await using opened = new AsyncDisposableStack();
  const diagnostics = opened.adopt(await openDiagnostics(io, args.log), (each) => each.close());
  const env = childProcessEnvironment(io.env);
  const launcher = opened.adopt(openLauncher(env), (each) => each.close());
  const atOnce = () => {
    launcher.kill();
    endAllChildProcesses('SIGKILL');
  };
  const stop = opened.adopt(watchForStopSignal(io, atOnce), (each) => each.close());
  const workers = opened.adopt(
    await openRunWorkers({ workers: args.slots, threads: settings.threads }, { diagnostics, launcher }),
    (each) => each.close(),
  );
  const host = new Host({
    queue,
    id: randomBytes(ID_BYTES).toString('hex'),
    ...(args.name !== undefined && { name: args.name }),
    slots: args.slots,
    labels: args.labels,
    version: await ownVersion(),
    home: settings.home,
    fetches: args.fetches,
    env,
    runTask: workers.run,
    contain,
    tell: (line) => void print(io.stdout, `${line}\n`),
    onDiagnostic: diagnostics.diagnose,
  });
  opened.adopt(host, (each) => each.close());
  workers.warm(args.slots);
  await host.open();
  const labels = args.labels.length === 0 ? '' : `, labels ${args.labels.join(', ')}`;
  const places = args.slots === 1 ? '1 slot' : `${args.slots} slots`;
  await print(
    io.stdout,
    `${host.name} takes work from ${redisAddressWithoutPassword(args.queue)}: ${places}${labels}\n`,
  );
  if (!stop.signal.aborted) await once(stop.signal, 'abort');
  return exitCode.done;
}

type ContainRun = ConstructorParameters<typeof Host>[0]['contain'];

/** Throws UsageError if this machine has no sandbox, unless the user turned it off for this host. */
async function openHostContainment(args: HostArgs, settings: Settings, io: Io): Promise<ContainRun> {
  const project = hostsFolder(settings.home);
  await mkdir(project, { recursive: true });
  const place = { settings, cwd: io.cwd, root: project };
  const wish = readSandboxWish({ ...args, sandbox: args.sandbox ?? settings.sandbox ?? 'required' }, place);
  const open = (net: readonly HostName[]) =>
    openContainment({ ...wish, net } satisfies SandboxWish, {
      io: { ...io, cwd: project },
      state: settings.home,
      project,
    });
  await open(wish.net);
  return async (order: Order, onConnection): Promise<Contain | undefined> => {
    const refused = order.net.filter((host) => !wish.net.some(({ text }) => text === host));
    if (refused.length > 0)
      throw new Refusal(
        `the run lets commands reach ${refused.join(', ')}, and this host does not: start it with ${refused.map((host) => `--net ${host}`).join(' ')}`,
      );
    const { workspaces } = await open(order.net.map(parseSandboxHost));
    if (workspaces === undefined && order.sandbox === 'required')
      throw new Refusal(
        'the run requires a sandbox, and this host runs commands without one: start it without --sandbox off',
      );
    return workspaces?.({
      rules: order.rules,
      onConnection: (event: NetworkEvent, label) => onConnection(event, label),
    });
  };
}
