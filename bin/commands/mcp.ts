// drover mcp: the MCP servers of this folder: listed, added, removed, tried, logged in at.

import { join, resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { projectPlaceForTrust } from '@drover/trust/place';
import { printLine, printJsonLine } from '../io.ts';
import type { Io } from '../io.ts';
import { findMcpServers, type ServerList } from '../mcp/server-list.ts';
import { defineCommand, flagOption, listOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { loadSettings, findWorkFolder } from '../start/settings.ts';
import { openTrustedProject, trustOptions } from '../trust/open-project.ts';
import { cleanText, textForLog } from '../views/text/terminal-text.ts';

const HOW_TO_ADD = 'drover mcp add NAME -- PROGRAM ARGUMENTS';
const ACTIONS = ['list', 'test', 'add', 'remove', 'login', 'logout'];

export const mcp = defineCommand({
  word: { name: 'action', about: 'list, test, add, remove, login or logout', required: true, offered: () => ACTIONS },
  second: { name: 'name', about: 'Server; after add, its program and arguments follow', required: false, many: true },
  options: {
    cwd: valueOption('Input:', 'DIR', 'Folder to work in (default: the current folder)', parseNonEmpty),
    mcp: listOption('Input:', 'FILE', 'Further servers, in a file like .mcp.json', parseNonEmpty),
    file: valueOption(
      'Options:',
      'FILE',
      'File to add to or remove from (default: .mcp.json of the repository)',
      parseNonEmpty,
    ),
    url: valueOption('Options:', 'URL', 'Address of a server to add', parseNonEmpty),
    json: flagOption('Options:', 'Print one JSON object'),
    ...trustOptions,
  },
  examples: [
    ['drover mcp list', 'Servers, and where each is named'],
    ['drover mcp test', 'Start each server and list its tools'],
    ['drover mcp add memory -- node_modules/.bin/mcp-server-memory', 'Add a program to .mcp.json'],
    ['drover mcp add docs --url https://mcp.example.com', 'Add an address'],
    ['drover mcp remove memory', 'Remove it again'],
    ['drover mcp login docs', 'Log in at a server that wants it, in a browser'],
  ],
  async run({ word, second, others, ...args }, io) {
    const cwd = await findWorkFolder(args.cwd, io);
    switch (word) {
      case 'list':
        return listMcpServers(await readMcpServers(cwd, args, io), args.json, io);
      case 'test':
        return testMcpServers(cwd, { ...args, name: second }, io);
      case 'add':
        return addMcpServer(cwd, { name: second, words: others, ...args }, io);
      case 'remove':
        return removeMcpServer(cwd, { name: second, ...args }, io);
      case 'login':
      case 'logout':
        return changeMcpLogin({ word, cwd, name: second, args }, io);
      default:
        throw new UsageError(`'${word ?? ''}' is none of ${ACTIONS.join(', ')}; see drover mcp --help`);
    }
  },
});

type Args = { readonly mcp: readonly string[]; readonly 'trust-project': boolean };

async function readMcpServers(
  cwd: string,
  { mcp: files, 'trust-project': trustsAll }: Args,
  io: Io,
): Promise<ServerList> {
  const settings = await loadSettings(io, cwd, { trustsAll });
  const project = await openTrustedProject(io, cwd, { trustsAll });
  return findMcpServers({ settings, top: cwd, sources: { project, files } }, io);
}

async function listMcpServers({ servers, warnings }: ServerList, isJson: boolean, io: Io): Promise<number> {
  const rows = servers.map(({ spec: { name, scope, reach, place } }) => ({
    name,
    scope,
    reach: reach.type === 'http' ? reach.url : [reach.command, ...reach.args].join(' '),
    place,
  }));
  if (isJson) await printJsonLine(io, { servers: rows, warnings });
  else {
    const lines = rows.map(
      ({ name, scope, reach, place }) => `${name} (${scope}): ${cleanText(reach)}\n  ${cleanText(place)}`,
    );
    const none = `No MCP servers. Add one with: ${HOW_TO_ADD}`;
    await printLine(
      io,
      textForLog(`${[...(lines.length === 0 ? [none] : lines), ...warnings.map(cleanText)].join('\n')}\n`, io.env),
    );
  }
  return exitCode.done;
}

async function testMcpServers(
  cwd: string,
  args: Args & { readonly name: string | undefined; readonly json: boolean },
  io: Io,
) {
  const { servers, warnings } = await readMcpServers(cwd, args, io);
  const chosen = args.name === undefined ? servers.map(({ spec }) => spec) : [mcpServerOfName(servers, args.name)];
  const { tryMcpServers } = await import('../mcp/try-servers.ts');
  const tried = await tryMcpServers(chosen, { settings: await loadSettings(io, cwd), top: cwd, io });
  const isGood = tried.every(({ works }) => works) && warnings.length === 0;
  if (args.json) await printJsonLine(io, { ok: isGood, servers: tried, warnings });
  else {
    const lines = tried.flatMap(({ name, works, says, leftOut }) => [
      works ? `${name}: ${says}` : says,
      ...leftOut.map((each) => `  ${each}`),
    ]);
    await printLine(io, textForLog(`${[...lines, ...warnings].map(cleanText).join('\n')}\n`, io.env));
  }
  return isGood ? exitCode.done : exitCode.usage;
}

function mcpServerOfName(servers: ServerList['servers'], name: string) {
  const spec = servers.find((each) => each.spec.name === name)?.spec;
  if (spec !== undefined) return spec;
  const names = servers.map((each) => each.spec.name);
  const others =
    names.length === 0 ? `, nor any other; add one with: ${HOW_TO_ADD}` : `; there are ${names.join(', ')}`;
  throw new UsageError(cleanText(`there is no MCP server ${name}${others}`));
}

type LoginWish = {
  readonly word: 'login' | 'logout';
  readonly cwd: string;
  readonly name: string | undefined;
  readonly args: Args;
};

async function changeMcpLogin({ word, cwd, name, args }: LoginWish, io: Io): Promise<number> {
  const { servers } = await readMcpServers(cwd, args, io);
  if (name === undefined) throw new UsageError(`say which server: drover mcp ${word} NAME; drover mcp list shows them`);
  const spec = mcpServerOfName(servers, name);
  const { home } = await loadSettings(io, cwd);
  const { logInToServer, logOutOfServer } = await import('../mcp/login/log-in.ts');
  if (word === 'login') {
    await logInToServer(spec, { home, io });
    await printLine(io, `Logged in at ${spec.name}.\n`);
  } else {
    const had = logOutOfServer(spec, home);
    await printLine(io, had ? `The login at ${spec.name} is removed.\n` : `There was no login at ${spec.name}.\n`);
  }
  return exitCode.done;
}

type Edit = { readonly name: string | undefined; readonly file: string | undefined };

async function addMcpServer(
  cwd: string,
  { name, words, url, file }: Edit & { readonly words: readonly string[]; readonly url: string | undefined },
  io: Io,
) {
  const [program, ...args] = words;
  if (name === undefined || (program === undefined) === (url === undefined))
    throw new UsageError('say the name and either a program or --url: drover mcp add NAME -- PROGRAM ARGUMENTS');
  const entry = program === undefined ? { type: 'http', url: url ?? '' } : { command: program, args };
  const path = await chooseMcpFile(cwd, file, io);
  const { editMcpFile } = await import('../mcp/edit-file.ts');
  await editMcpFile(path, name, entry);
  const next = file === undefined ? 'approve it with: drover trust' : `use it with: --mcp ${file}`;
  await printLine(io, `${cleanText(path)} has the server ${cleanText(name)} now; ${next}\n`);
  return exitCode.done;
}

async function removeMcpServer(cwd: string, { name, file }: Edit, io: Io): Promise<number> {
  if (name === undefined) throw new UsageError('say which server: drover mcp remove NAME');
  const path = await chooseMcpFile(cwd, file, io);
  const { editMcpFile } = await import('../mcp/edit-file.ts');
  await editMcpFile(path, name, undefined);
  await printLine(io, `${cleanText(path)} has no server ${cleanText(name)} any more.\n`);
  return exitCode.done;
}

async function chooseMcpFile(cwd: string, file: string | undefined, io: Io): Promise<string> {
  return file === undefined ? join((await projectPlaceForTrust(cwd)).repository, '.mcp.json') : resolve(io.cwd, file);
}
