// The flags of `drover serve`, which apply to all its sessions and runs.

import type { Rule } from '@drover/core/permission/rules';
import type { HostsWish } from '../hosts/open-fleet.ts';
import type { Diagnostics } from '../diagnostics.ts';
import type { RunArgs } from '../run/run-options.ts';
import type { Io } from '../io.ts';
import type { Budget } from '../start/quantities.ts';
import type { ServerHub } from '../mcp/open-servers.ts';
import type { Containment } from '../sandbox/containment.ts';
import type { SandboxArgs } from '../sandbox/sandbox-options.ts';

export type ServeWishes = {
  readonly model: string | undefined;
  readonly rules: readonly Rule[];
  readonly yes: boolean;
  readonly containment: Containment;
  readonly steps: number | undefined;
  readonly budget: Budget | undefined; // of each session, and of each run that says nothing else
  readonly mcp: readonly string[]; // files of --mcp
  readonly hosts: HostsWish | undefined; // for tasks of runs
  readonly hub: ServerHub;
  readonly diagnostics: Diagnostics;
  readonly io: Io;
};

/** As typed; their meaning depends on the served folder. */
export type TypedWishes = Omit<ServeWishes, 'containment' | 'hub' | 'hosts'> & {
  readonly sandbox: SandboxArgs;
  readonly hosts: Pick<RunArgs, 'queue' | 'local'>;
};
