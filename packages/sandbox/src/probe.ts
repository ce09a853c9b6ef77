// Probe: starts a sandbox in which a program really tries to get out.
//
// Guarantees
//   1. Writes, connections and killed processes are observed from outside. Only reads are taken from its output.
//   2. One attempt that succeeds means that there is no sandbox.
//   3. The probe removes its files and ends its process, unless drover itself is killed meanwhile.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { elfCallingProgram } from './linux/elf.ts';
import type { SandboxPolicy, SandboxSystem } from './policy.ts';
import { isInSandboxPath, statOrUndefined, realPathForSandbox } from './paths.ts';
import { confineScript, hasSandboxStarted, quoteForSandboxShell } from './sandbox.ts';
import { type Architecture, REFUSED } from './linux/syscalls.ts';

const PROBE_MS_MAX = 20_000;
const EPERM = 1;

export type Check = { readonly name: string; readonly contained: boolean };

export type ProbeResult =
  | { readonly started: true; readonly finished: true; readonly checks: readonly Check[] }
  | { readonly started: true; readonly finished: false; readonly message: string }
  | { readonly started: false; readonly message: string };

type ProbePlace = {
  readonly architecture: Architecture;
  /** A folder that no sandbox shows. */
  readonly state: string;
};

export async function probeSandbox(system: SandboxSystem, { architecture, state }: ProbePlace): Promise<ProbeResult> {
  const folder = probeBaitFolder(system, state);
  const bait = await layProbeBait(folder, architecture);
  try {
    const { report, output, complaint } = await runProbeScript(bait.policy(system), bait.script(system.node));
    if (!hasSandboxStarted(report))
      return { started: false, message: probeReportInOneLine(complaint) || 'it did not start' };
    if (!bait.isFinished(output))
      return {
        started: true,
        finished: false,
        message: probeReportInOneLine(output.slice(-500)) || 'there was no output',
      };
    return { started: true, finished: true, checks: bait.verdict(output) };
  } finally {
    bait.clear();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Prefers the folder for temporary files, since a socket needs a short path, unless the sandbox shows that folder. */
function probeBaitFolder({ folders, toolchains }: SandboxSystem, state: string): string {
  const temporary = realPathForSandbox(tmpdir());
  const shown = [...folders.map(({ path }) => path), ...toolchains];
  const isUsable =
    statOrUndefined(temporary)?.isDirectory() === true && !shown.some((path) => isInSandboxPath(temporary, path));
  return mkdtempSync(join(isUsable ? temporary : realPathForSandbox(state), 'drover-probe-'));
}

function probeReportInOneLine(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ');
}

type Bait = {
  readonly policy: (system: SandboxSystem) => SandboxPolicy;
  readonly script: (node: string) => string;
  readonly verdict: (output: string) => readonly Check[];
  readonly isFinished: (output: string) => boolean;
  readonly clear: () => void;
};

async function layProbeBait(folder: string, architecture: Architecture): Promise<Bait> {
  const marker = randomUUID();
  const outside = join(folder, 'outside');
  const root = join(folder, 'root');
  for (const path of [outside, root, join(folder, 'box', 'home'), join(folder, 'box', 'tmp')])
    mkdirSync(path, { recursive: true });
  const secret = join(outside, 'secret');
  writeFileSync(secret, marker);
  const ptrace = REFUSED['ptrace']?.[architecture] ?? 0;
  writeFileSync(join(root, 'ptrace'), elfCallingProgram(architecture, ptrace), { mode: 0o755 });
  const calls = { tcp: 0, unix: 0 };
  const tcp = await listenForProbe(0, () => calls.tcp++);
  const unix = await listenForProbe(join(outside, 'socket'), () => calls.unix++);
  const address = tcp.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const bystander = spawn('sleep', ['60'], { env: { PATH: '/usr/bin:/bin', DROVER_PROBE: marker }, stdio: 'ignore' });
  bystander.on('error', () => undefined);
  const told = { secret, written: join(outside, 'written'), socket: join(outside, 'socket'), port, pid: bystander.pid };
  return {
    policy: (system) => policyForProbe(system, root, join(folder, 'box')),
    script: (node) => [node, '-e', ATTEMPT, JSON.stringify(told)].map(quoteForSandboxShell).join(' '),
    verdict: (output) => [
      { name: 'write a file outside', contained: !existsSync(told.written) },
      { name: 'read a file outside', contained: !output.includes(`read:${marker}`) },
      { name: 'connect to a port of this machine', contained: calls.tcp === 0 },
      { name: "reach the socket of drover's launcher", contained: calls.unix === 0 },
      {
        name: 'see or end a process outside',
        contained: isProbeBystanderAlive(bystander) && !output.includes(`seen:${marker}`),
      },
      { name: 'change a setting of the kernel', contained: !output.includes('setting:open') },
      { name: 'trace a process', contained: output.includes(`ptrace:${EPERM}\n`) },
    ],
    isFinished: (output) => output.includes('tried:all\n'),
    clear() {
      bystander.kill('SIGKILL');
      tcp.close();
      unix.close();
    },
  };
}

function policyForProbe(system: SandboxSystem, root: string, folder: string): SandboxPolicy {
  return { system, root, folder, readable: [], writable: [], sealed: [], hidden: [], groups: [] };
}

function isProbeBystanderAlive({ exitCode, signalCode, pid }: ChildProcess): boolean {
  // A machine without `sleep` has no bystander to harm.
  return pid === undefined || (exitCode === null && signalCode === null);
}

// Runs inside.
const ATTEMPT = `
const fs = require("node:fs"), net = require("node:net"), self = require("node:process");
const told = JSON.parse(self.argv[1]);
const attempt = (act) => { try { return act(); } catch { return undefined; } };
attempt(() => fs.writeFileSync(told.written, "x"));
console.log("read:" + attempt(() => fs.readFileSync(told.secret, "utf8")));
for (const id of fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name))) {
  const found = /DROVER_PROBE=([^\\0]*)/.exec(attempt(() => fs.readFileSync("/proc/" + id + "/environ", "utf8")) ?? "");
  if (found) console.log("seen:" + found[1]);
}
attempt(() => { fs.closeSync(fs.openSync("/proc/sys/kernel/core_pattern", "r+")); console.log("setting:open"); });
if (told.pid > 100) attempt(() => self.kill(told.pid, "SIGKILL"));
console.log("ptrace:" + require("node:child_process").spawnSync("./ptrace").status);
const reach = (target) => new Promise((done) => {
  const socket = net.connect(target);
  socket.once("connect", () => { socket.destroy(); setTimeout(done, 100); });
  socket.once("error", done);
  setTimeout(done, 1000).unref();
});
Promise.all([reach({ host: "127.0.0.1", port: told.port }), reach({ path: told.socket })]).then(() => console.log("tried:all"));
`;

type Ran = { readonly report: string; readonly output: string; readonly complaint: string };

function runProbeScript(policy: SandboxPolicy, script: string): Promise<Ran> {
  const { file, args, env, files } = confineScript(policy, { PATH: '/usr/bin:/bin' });
  const open = files.map((path) => openSync(path, 'r'));
  const child = spawn(file, args, {
    env,
    cwd: policy.root,
    timeout: PROBE_MS_MAX,
    killSignal: 'SIGKILL',
    stdio: ['pipe', 'pipe', 'pipe', ...open, 'pipe'],
  });
  // A sandbox that does not start reads no script.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(script);
  for (const descriptor of open) closeSync(descriptor);
  const texts = [1, 2, 3 + open.length].map((number) => {
    const text = { told: '' };
    const stream = child.stdio[number];
    if (stream !== null && stream !== undefined && 'setEncoding' in stream)
      stream.setEncoding('utf8').on('data', (piece: string) => void (text.told += piece));
    return text;
  });
  return new Promise((resolve) => {
    const [output, complaint, report] = texts.map((text) => () => text.told);
    const tell = (error?: Error) =>
      resolve({
        report: report?.() ?? '',
        output: output?.() ?? '',
        complaint: error?.message ?? complaint?.() ?? '',
      });
    child.once('error', tell);
    child.once('close', () => tell());
  });
}

function listenForProbe(where: number | string, onConnection: () => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      onConnection();
      socket.destroy();
    });
    server.once('error', reject);
    server.listen(typeof where === 'string' ? { path: where } : { port: where, host: '127.0.0.1' }, () => {
      server.unref();
      resolve(server);
    });
  });
}

/** Returns a cached verdict, or undefined. */
export function readProbeVerdict(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    // The file is missing or incomplete.
    if (error instanceof SyntaxError || (error instanceof Error && 'code' in error)) return undefined;
    throw error;
  }
}
