// The sandbox: a policy becomes a process inside which a shell waits for its script on standard input, and runs it.
//
// Guarantees
//   1. A command sees system folders, toolchains and what the policy names, and no other file. It writes to its root,
//      to its private HOME and /tmp, and to what the policy calls writable.
//   2. It sees no process but its own, and every process it starts is gone when it ends.
//   3. It reaches no network but the hosts that the proxy allows; without a proxy, none.
//   4. It holds no capability, makes no namespace, and cannot call what `syscalls.ts` refuses.
//   5. Its processes, memory, files and CPU time are bounded.
//   6. A sandbox that does not start never runs the command: `hasSandboxStarted` tells the two apart, whatever was
//      printed.
//
// Failure: the caller reports a sandbox that did not start as a failure of drover. It never starts the command outside.

import { bubblewrapArguments, prepareBubblewrapMountPoints, PROXY_SOCKET } from './linux/bubblewrap.ts';
import { sandboxLimitsPrelude, sandboxLimitsProgramPrelude } from './linux/limits.ts';
import { environmentWithoutProxy, environmentWithProxy, proxyRelayArguments } from './net/relay.ts';
import type { ConfinedProcess, SandboxPolicy } from './policy.ts';
import { seatbeltProfile } from './seatbelt.ts';

const RELAY_PORT = 3128;

// Linux takes no longer argument.
const ARGUMENT_BYTES_MAX = 131_071;

// The shell may wait long before there is a script. The script begins when the input ends, and has an empty one itself.
// A shell of its own runs it: `eval` would nest it, which `set -x` shows. A script too long for an argument is nested.
function runSandboxScript(shell: string): string {
  const fits = `fits() { local LC_ALL=C; [ \${#REPLY} -le ${ARGUMENT_BYTES_MAX} ]; }`;
  const run = `fits && exec -a bash ${quoteForSandboxShell(shell)} -c -- "$REPLY"; unset -f fits; eval "unset REPLY; $REPLY"`;
  return `IFS= read -r -d ''; exec 0</dev/null 2>&1; ${fits}; ${run}`;
}

/** The process that runs a script in the sandbox. Its stderr is its stdout. */
export function confineScript(policy: SandboxPolicy, env: Readonly<Record<string, string>>): ConfinedProcess {
  const { system } = policy;
  return encloseInSandbox(policy, env, [
    '-c',
    `${sandboxLimitsPrelude(system.limits)}${relaySandboxProxy(policy)}${runSandboxScript(system.shell)}`,
  ]);
}

/** A program with its arguments, and the folder it starts in. */
export type Program = { readonly argv: readonly string[]; readonly cwd: string };

/** The process that is a program in the sandbox. Its standard streams are the program's own. */
export function confineSandboxProgram(
  policy: SandboxPolicy,
  env: Readonly<Record<string, string>>,
  { argv, cwd }: Program,
): ConfinedProcess {
  const begin = `${sandboxLimitsProgramPrelude(policy.system.limits)}${relaySandboxProxy(policy)}cd -- "$1" && shift && exec "$@"`;
  return encloseInSandbox(policy, env, ['-c', begin, 'drover', cwd, ...argv]);
}

function encloseInSandbox(
  policy: SandboxPolicy,
  env: Readonly<Record<string, string>>,
  shellArguments: readonly string[],
): ConfinedProcess {
  const { system, proxy } = policy;
  const inner = {
    ...env,
    ...system.toolchainEnv,
    ...(proxy === undefined ? environmentWithoutProxy() : environmentWithProxy(RELAY_PORT)),
    ...innerSandboxPlaces(policy, env),
  };
  const command = [system.shell, ...shellArguments];
  switch (system.backend) {
    case 'bubblewrap': {
      prepareBubblewrapMountPoints(policy);
      const { outside, options } = environmentOutsideSandbox(inner);
      return {
        ...prepareSandboxProcess(policy.groups, [
          system.program,
          ...bubblewrapArguments(policy),
          ...options,
          '--',
          ...command,
        ]),
        env: outside,
        files: [system.filter],
        report: true,
      };
    }
    case 'seatbelt':
      return {
        file: system.program,
        args: ['-p', seatbeltProfile(policy), ...command],
        env: inner,
        files: [],
        report: false,
      };
  }
}

/**
 * Bubblewrap itself starts outside, in the workspace. So variables of the dynamic loader are set inside only: they may
 * name a folder of libraries that a command has written.
 */
function environmentOutsideSandbox(env: Readonly<Record<string, string>>) {
  const all = Object.entries(env);
  const isLoaders = (name: string) => name.startsWith('LD_');
  return {
    outside: Object.fromEntries(all.filter(([name]) => !isLoaders(name))),
    options: all.flatMap(([name, value]) => (isLoaders(name) ? ['--setenv', name, value] : [])),
  };
}

/** Whether the command was started, by what the sandbox reported on its descriptor. */
export function hasSandboxStarted(report: string): boolean {
  return /"exit-code"\s*:/.test(report);
}

function innerSandboxPlaces({ system }: SandboxPolicy, env: Readonly<Record<string, string>>): Record<string, string> {
  const tmp = '/tmp';
  return { HOME: system.home, TMPDIR: tmp, TMP: tmp, TEMP: tmp, PATH: sandboxPathWith(env['PATH'] ?? '', system.node) };
}

/** Drover's own Node comes last: the project's choice counts. */
function sandboxPathWith(path: string, node: string): string {
  const folder = node.slice(0, node.lastIndexOf('/'));
  const folders = path.split(':').filter((each) => each !== '');
  return [...folders, ...(folders.includes(folder) ? [] : [folder])].join(':');
}

// The relay is ready before the command begins, so that its first connection is not refused. It is not a child of the
// shell, so that a plain `wait` in a script does not wait for it.
function relaySandboxProxy({ proxy, system }: SandboxPolicy): string {
  if (proxy === undefined) return '';
  const socket = system.backend === 'bubblewrap' ? PROXY_SOCKET : proxy.socket;
  const relay = [system.node, ...proxyRelayArguments(RELAY_PORT, socket, proxy.rules)]
    .map(quoteForSandboxShell)
    .join(' ');
  return `read -r _ < <( (${relay} 2>/dev/null &) ); `;
}

/** Returns one word of shell text. */
export function quoteForSandboxShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

// A process joins its control groups before it becomes the sandbox, so that nothing it starts is outside them. When
// memory runs out on a machine without control groups, the kernel ends a task before anything else.
const PREPARE =
  '{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null; while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"';

function prepareSandboxProcess(
  groups: readonly string[],
  argv: readonly string[],
): Pick<ConfinedProcess, 'file' | 'args'> {
  return { file: '/bin/sh', args: ['-c', PREPARE, 'drover', ...groups, '--', ...argv] };
}
