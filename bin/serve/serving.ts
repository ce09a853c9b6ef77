// The server at work: from its first word to its last.

import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { endAllChildProcesses } from '@drover/core/tools/process/child';
import { createServerApp } from '@drover/server/app';
import { httpHostsAt, isLoopbackHttpAddress } from '@drover/server/http/guard';
import { listenForHttp, type Listening } from '@drover/server/http/listen';
import { pageAsset } from '@drover/server/page/assets';
import { Tickets } from '@drover/server/http/ticket';
import { readHostsWish } from '../hosts/open-fleet.ts';
import { chooseModel } from '../model/model-choice.ts';
import { tellDefaultModel } from '../model/model-names.ts';
import { openProvider } from '../model/open-provider.ts';
import { openServerHub } from '../mcp/open-servers.ts';
import { exitCodeOfStop } from '../start/exit-code.ts';
import { printError, type Io, print } from '../io.ts';
import { diagnoseSandbox, openContainment } from '../sandbox/containment.ts';
import { readSandboxWish } from '../sandbox/sandbox-options.ts';
import { errorCodeOf, loadSettings, type Settings } from '../start/settings.ts';
import { watchForStopSignal } from '../stop.ts';
import { textStyle } from '../views/text/style.ts';
import { cleanText } from '../views/text/terminal-text.ts';
import { openBrowser } from './browser.ts';
import { openServeHost } from './host.ts';
import { openServerToken } from './token-file.ts';
import type { TypedWishes } from './wishes.ts';
import { statIfThere } from '@drover/core/files/lookup';

export type Where = {
  readonly cwd: string | undefined; // the folder that is served
  readonly address: string;
  readonly port: number;
  readonly names: readonly string[]; // further ones that lead here
  readonly json: boolean;
  readonly open: boolean;
};

/** Serves until it is told to stop. */
export async function runServer({ cwd, address, port, names, json, open }: Where, typed: TypedWishes): Promise<number> {
  const { io } = typed;
  const root = await servedFolder(cwd, io);
  const settings = await loadSettings(io, root);
  await tellDefaultModel(typed.model, settings, io);
  if (typed.model !== undefined) await checkServeModel(typed.model, settings, io);
  const hosted = readHostsWish(typed.hosts, settings);
  if (hosted !== undefined) await (await import('@drover/hosts/line/redis')).checkRedisQueue(hosted);
  const wish = readSandboxWish(typed.sandbox, { settings, cwd: io.cwd, root });
  const containment = await openContainment(wish, { io, state: settings.home, root, project: root });
  const { notice } = containment;
  diagnoseSandbox(containment, typed.diagnostics);
  for (const warning of [...settings.warnings, ...(notice === undefined ? [] : [notice])])
    await printError(io, warning);
  const hub = openServerHub(settings.home, typed.diagnostics.diagnose);
  const wishes = { ...typed, containment, hub, hosts: hosted };
  const { version } = (await import('../../package.json', { with: { type: 'json' } })).default;
  const { token, path } = await openServerToken(settings.home);
  const tickets = new Tickets();
  let hosts: readonly string[] = [];
  const app = createServerApp(openServeHost(wishes, { root, version }), {
    token,
    hosts: () => hosts,
    origins: () => names.map((name) => `https://${name}`),
    tickets,
    page: pageAsset,
  });
  const stop = watchForStopSignal(io, () => endAllChildProcesses('SIGKILL'));
  const listening = await listenForHttp(app, { address, port }).catch((error: unknown) => {
    throw new UsageError(cannotListenSentence(address, port, errorCodeOf(error)), { cause: error });
  });
  hosts = [...httpHostsAt(address, listening.port), ...names.flatMap((name) => [name, `${name}:${listening.port}`])];
  await print(
    io.stdout,
    json ? serveStartJson(listening, path) : serveStartWords({ listening, root, path, ticket: tickets.issue() }, io),
  );
  if (!isLoopbackHttpAddress(address)) await print(io.stderr, openAddressWarning(address));
  const opened = open
    ? await openBrowser(`${listening.url}/#ticket=${tickets.issue()}`, { io, home: settings.home })
    : undefined;
  await whenAborted(stop.signal);
  await opened?.[Symbol.asyncDispose]();
  await listening.close();
  await hub.close();
  stop.close();
  return exitCodeOfStop(stop.cause());
}

/** Checks the arguments now, and not when the first client connects. */
async function checkServeModel(model: string, settings: Settings, io: Io): Promise<void> {
  const { close } = await openProvider(chooseModel(model, settings, io.cwd), settings);
  await close();
}

async function servedFolder(cwd: string | undefined, io: Io): Promise<string> {
  const path = cwd === undefined ? io.cwd : resolve(io.cwd, cwd);
  const found = await statIfThere(path);
  if (found?.isDirectory() !== true) throw new UsageError(`--cwd: there is no folder ${path}`);
  return realpath(path);
}

function cannotListenSentence(address: string, port: number, code: string): string {
  if (code === 'EADDRINUSE')
    return `port ${port} is taken, perhaps by another drover serve; choose one with --port N, or any with --port 0`;
  if (code === 'EACCES') return `port ${port} is not for everybody; choose one above 1023 with --port N`;
  return `${address} is no address of this machine to listen at (${code})`;
}

type Served = {
  readonly listening: Listening;
  readonly root: string;
  readonly path: string;
  readonly ticket: string;
};

/** The address with the ticket is only for the user at the terminal, not for a log. */
function serveStartWords({ listening: { url }, root, path, ticket }: Served, io: Io): string {
  const style = textStyle(io.stdout, io.env);
  const isSeen = io.stdout.isTTY === true;
  const page = isSeen ? `${url}/#ticket=${ticket}` : `${url}/`;
  const rows = [
    ['page', style('cyan', page), isSeen ? 'lets you in once, within five minutes' : ''],
    ['token', path, 'for programs, and for the page later'],
  ];
  const lines = rows.map(([name = '', value = '', about = '']) =>
    `  ${name.padEnd(5)}  ${value}  ${style('dim', about)}`.trimEnd(),
  );
  return `${style('bold', 'drover serves')} ${cleanText(root)}\n${lines.join('\n')}\n${style('dim', 'Ctrl-C ends it; what is at work then can be gone on with.')}\n`;
}

function serveStartJson({ url, address, port }: Listening, tokenFile: string): string {
  return `${JSON.stringify({ url, address, port, tokenFile })}\n`;
}

function openAddressWarning(address: string): string {
  return `drover: whoever reaches ${address} and has the token can run commands here, and nothing on the way is encrypted; put it behind something that is\n`;
}

async function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((done) => signal.addEventListener('abort', done, { once: true }));
}
