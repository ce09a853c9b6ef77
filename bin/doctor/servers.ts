// Tries the MCP servers of the folder: each is started and asked for its tools.

import { UsageError } from '@drover/core/errors';
import type { Io } from '../io.ts';
import { findMcpServers } from '../mcp/server-list.ts';
import { ONLY_APPROVED, type Settings } from '../start/settings.ts';
import { findTrustProject } from '../trust/open-project.ts';
import type { Finding } from './finding.ts';

const check = 'mcp';

export async function checkMcpServers(settings: Settings, cwd: string, io: Io): Promise<readonly Finding[]> {
  try {
    const project = await findTrustProject(io, cwd, ONLY_APPROVED);
    const { servers, warnings } = await findMcpServers({ settings, top: cwd, sources: { project, files: [] } }, io);
    const notes = warnings.map((says): Finding => ({ check, state: 'note', says }));
    if (servers.length === 0) return notes;
    const { tryMcpServers } = await import('../mcp/try-servers.ts');
    const specs = servers.map(({ spec }) => spec);
    const tried = await tryMcpServers(specs, { settings, top: cwd, io });
    return [...notes, ...tried.flatMap((each) => triedServerFindings(each, specs))];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return [{ check, state: 'bad', says: error.message }];
  }
}

type Tried = Awaited<ReturnType<typeof import('../mcp/try-servers.ts').tryMcpServers>>[number];

function triedServerFindings(
  { name, works, says, leftOut }: Tried,
  specs: readonly { readonly name: string; readonly isRequired: boolean }[],
): readonly Finding[] {
  const left = leftOut.map((each): Finding => ({ check, state: 'note', says: each }));
  if (works) return [{ check, state: 'good', says: `${name} works: ${says}` }, ...left];
  const isRequired = specs.find((spec) => spec.name === name)?.isRequired === true;
  return [
    {
      check,
      state: isRequired ? 'bad' : 'note',
      says,
      fix: `mend the server, or try it with: drover mcp test ${name}`,
    },
  ];
}
