#!/usr/bin/env node
// drover: the list of its commands, and the process they run in.
//
// `main` is the whole program as a function of arguments and an Io; tests call it. The code below it
// handles what only a process has: streams, signals and the exit code.

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { DroverError, UsageError } from '@drover/core/errors';
import type { ListedCommand } from './start/command-line.ts';
import { helpWordsAsFlags, exitCodeTable, isAboutExitCodes } from './help/plain-forms.ts';
import { exitCodeOfFailure, exitCodeOfStop, exitCode } from './start/exit-code.ts';
import {
  printError,
  type Io,
  isOutputGone,
  type Job,
  print,
  type StopCause,
  type StopListener,
  whenOutputUnread,
} from './io.ts';
import { parsePlainCommandLine } from './start/plain-words.ts';

const NODE_MIN = 24;
// Deadline of a stop. With up to 1 s for a stubborn child, the process ends within 3 s.
const STOP_MS_MAX = 2_000;
// How long a stop waits for a stalled stdout reader.
const UNREAD_MS_MAX = 1_000;
const FLUSH_MS_MAX = 1_000;
// Loading what bounds the heap takes 5 ms, which the first request need not wait for.
const HEAP_BOUND_MS = 100;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** In the order of the help. */
export const commands: readonly ListedCommand[] = [
  {
    name: 'run',
    words: '[goal]',
    about: 'Plan a goal, run its tasks in parallel, then merge and test the results',
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'plan',
    words: '[goal]',
    about: 'Plan a goal and print or save the plan, without running it',
    load: async () => (await import('./commands/plan.ts')).plan,
  },
  {
    name: 'batch',
    words: '[spec]',
    about: 'Run one task per file, folder or repository that a spec selects; made for CI',
    load: async () => (await import('./commands/batch.ts')).batch,
  },
  {
    name: 'exec',
    words: '[prompt]',
    about: 'Run one agent in this folder until it is done, without supervision',
    load: async () => (await import('./commands/exec.ts')).exec,
  },
  {
    name: 'chat',
    words: '',
    about: 'Chat with one agent in this folder; Esc interrupts it, your next message continues',
    load: async () => (await import('./commands/chat.ts')).chat,
  },
  {
    name: 'resume',
    words: '[id]',
    about: 'Resume an interrupted run or session',
    load: async () => (await import('./commands/resume.ts')).resume,
  },
  {
    name: 'retry',
    words: '[run] [task..]',
    about: 'Try the failed tasks of a run again, on top of everything that has landed',
    load: async () => (await import('./commands/retry.ts')).retry,
  },
  {
    name: 'merge',
    words: '[run]',
    about: 'Deliver what has landed in a run: merge it into your branch, or as a branch or patches',
    load: async () => (await import('./commands/merge.ts')).merge,
  },
  {
    name: 'rm',
    words: '<run>',
    about: 'Remove a run with its workspaces and branches, and say first what is lost',
    load: async () => (await import('./commands/rm.ts')).rm,
  },
  {
    name: 'runs',
    words: '',
    about: 'List runs and sessions',
    load: async () => (await import('./commands/runs.ts')).runs,
  },
  {
    name: 'show',
    words: '[id] [task]',
    about: 'Show the result of a run, of one of its tasks, or of a session',
    load: async () => (await import('./commands/show.ts')).show,
  },
  {
    name: 'diff',
    words: '[run] [task]',
    about: 'Show what a run or one of its tasks changed, landed or not',
    load: async () => (await import('./commands/diff.ts')).diff,
  },
  {
    name: 'logs',
    words: '<id> [task]',
    about: 'Print the events of a run or session, or follow them live',
    load: async () => (await import('./commands/logs.ts')).logs,
  },
  {
    name: 'replay',
    words: '<id>',
    about: 'Replay a run or session from its journal: no key, no network, nothing executed',
    load: async () => (await import('./commands/replay.ts')).replay,
  },
  {
    name: 'serve',
    words: '',
    about: 'Serve sessions and runs over HTTP, with a web page that shows them',
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'worker',
    words: '',
    about: 'Work on tasks of runs on other machines, which a Redis queue hands out',
    load: async () => (await import('./commands/worker.ts')).worker,
  },
  {
    name: 'hosts',
    words: '',
    about: 'List the worker hosts at a queue, and what they work on',
    load: async () => (await import('./commands/hosts.ts')).hosts,
  },
  {
    name: 'trust',
    words: '',
    about: 'Review and approve files of this project: config, hooks, skills, agents, MCP servers',
    load: async () => (await import('./commands/trust.ts')).trust,
  },
  {
    name: 'export',
    words: 'otlp <id>',
    about: 'Send the trace of a run or session to an OpenTelemetry collector',
    load: async () => (await import('./commands/export.ts')).exportCommand,
  },
  {
    name: 'gc',
    words: '',
    about: 'List data that no run needs, and remove it if you agree; never the only copy of work',
    load: async () => (await import('./commands/gc.ts')).gc,
  },
  {
    name: 'models',
    words: '',
    about: 'List providers, models and prices, and the models in use',
    load: async () => (await import('./commands/models.ts')).models,
  },
  {
    name: 'mcp',
    words: '<action> [name..]',
    about: 'List, test, add or remove MCP servers',
    load: async () => (await import('./commands/mcp.ts')).mcp,
  },
  {
    name: 'doctor',
    words: '',
    about: 'Check what works here, what is missing, and how to fix it',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'init',
    words: '',
    about: 'Write a commented config and an example batch; existing files stay',
    load: async () => (await import('./commands/init.ts')).init,
  },
  {
    name: 'demo',
    words: '',
    about: 'Watch a whole run on a sample project: no key, no network',
    load: async () => (await import('./commands/demo.ts')).demo,
  },
  {
    name: 'rehearse',
    words: '<script>',
    about: 'Serve a scripted model to this and other programs, on this machine only',
    load: async () => (await import('./commands/rehearse.ts')).rehearse,
  },
];

export async function main(given: readonly string[], io: Io): Promise<number> {
  try {
    if (isAboutExitCodes(given)) {
      await print(io.stdout, exitCodeTable());
      return exitCode.done;
    }
    if (given.length === 0 && io.stdin.isTTY === true && io.stdout.isTTY === true)
      return await (await import('./help/overview.ts')).openHelpOverview(io);
    const argv = helpWordsAsFlags(given);
    if (argv[0] === '--version') {
      const { version } = (await import('../package.json', { with: { type: 'json' } })).default;
      await print(io.stdout, `${version}\n`);
      return exitCode.done;
    }
    const command = await commands.find(({ name }) => name === argv[0])?.load();
    const typed = command && parsePlainCommandLine(command, argv.slice(1));
    if (command !== undefined && typed !== undefined) return await command.run(typed, io);
    const { runCommandLine } = await import('./start/command-line.ts');
    return await runCommandLine(commands, argv, io);
  } catch (error) {
    return reportError(error, io);
  }
}

async function reportError(error: unknown, io: Io): Promise<number> {
  if (error instanceof UsageError) {
    await printError(io, error.message);
    return exitCode.usage;
  }
  if (error instanceof DroverError) {
    await printError(io, error.message);
    return exitCodeOfFailure(error.failure);
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (io.env['DROVER_DEBUG'] === '1') await printError(io, `internal error: ${stack}`);
  else await printError(io, `internal error: ${stack.split('\n')[0]}; DROVER_DEBUG=1 shows the details`);
  return exitCode.internal;
}

function openProcessIo(): Io {
  // Node reports a closed reader as a stream error, which would crash the process without a listener. EPIPE is
  // not worth a message; a full disk is. Errors of stderr cannot be reported anywhere.
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.stderr.write(`drover: the output cannot be written (${error.code})\n`);
  });
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => undefined);
    // Node adds listeners for the output of every thread, so more than ten are not a leak.
    stream.setMaxListeners(0);
  }
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: { HOME: homedir(), ...process.env },
    cwd: process.cwd(),
    node: process.execPath,
    onStop: onStopSignal,
    job: processJob,
  };
}

const processJob: Job = {
  signal: (name) => void process.kill(0, name),
  isForeground: () => {
    try {
      // The fields after the process name: state, parent, group, session, terminal, foreground group.
      const [, , group, , , foreground] = (readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1) ?? '').split(' ');
      return group === foreground;
    } catch {
      return true; // macOS has no such file
    }
  },
  onContinue: (listener) => {
    process.on('SIGCONT', listener);
    return () => void process.off('SIGCONT', listener);
  },
  onExit: (listener) => {
    process.on('exit', listener);
    return () => void process.off('exit', listener);
  },
};

/** The first stop has a deadline; a second SIGINT exits at once. */
function onStopSignal({ takes, stop, atOnce }: StopListener): () => void {
  let deadline: NodeJS.Timeout | undefined;
  const end = (cause: StopCause): void => {
    atOnce();
    process.exit(exitCodeOfStop(cause));
  };
  const hear = (cause: StopCause): void => {
    if (deadline === undefined && takes?.(cause) === true) return;
    if (deadline !== undefined && cause === 'SIGINT') end(cause);
    if (deadline === undefined) whenOutputUnread(process.stdout, UNREAD_MS_MAX, () => end(cause));
    deadline ??= setTimeout(end, STOP_MS_MAX, cause).unref();
    stop(cause);
  };
  const hearClosed = (): void => hear('output closed');
  for (const name of SIGNALS) process.on(name, hear);
  process.stdout.on('error', hearClosed);
  return () => {
    for (const name of SIGNALS) process.off(name, hear);
    process.stdout.off('error', hearClosed);
  };
}

async function flushOutputs(io: Io): Promise<void> {
  const written = [io.stdout, io.stderr].map(
    (stream) => new Promise<void>((resolve) => (isOutputGone(stream) ? resolve() : stream.write('', () => resolve()))),
  );
  const timeUp = new Promise<void>((resolve) => setTimeout(resolve, FLUSH_MS_MAX).unref());
  await Promise.race([Promise.all(written), timeUp]);
}

let isRunning = false;

/** Runs the program once, even if bin/drover.cjs (readable by an older Node) calls it too. */
export async function runProcess(): Promise<void> {
  if (isRunning) return;
  isRunning = true;
  const io = openProcessIo();
  const version = Number.parseInt(process.versions.node, 10);
  if (version < NODE_MIN) {
    await print(io.stderr, `drover needs Node ${NODE_MIN} or newer; this is Node ${process.versions.node}.\n`);
    process.exit(exitCode.usage);
  }
  setTimeout(() => void import('./start/bound-heap.ts').then(({ boundHeap }) => boundHeap()), HEAP_BOUND_MS).unref();
  const code = await main(process.argv.slice(2), io);
  await flushOutputs(io);
  process.exit(code);
}

// `import.meta.main` is undefined in a bundle and in an old Node; `run` tells the old Node to upgrade.
if (import.meta.main !== false) void runProcess();
