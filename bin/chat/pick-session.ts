// Which session a chat continues: the newest of this folder (--continue), or one that the user picks (--resume).

import { UsageError } from '@drover/core/errors';
import { shortenStoredId } from '../history/id.ts';
import type { Io } from '../io.ts';
import { stateFolder } from '../start/settings.ts';
import { chatSessionChoice, listChatSessions } from './commands/sessions.ts';
import { Pastes } from './input/pastes.ts';
import { Terminal } from './input/terminal.ts';
import { Screen } from './screen/screen.ts';

const NONE = 'has no session to continue; drover chat starts one';

export function newestChatSession(cwd: string, io: Io): string {
  const [newest] = listChatSessions(stateFolder(io), cwd);
  if (newest === undefined) throw new UsageError(`--continue: ${cwd} ${NONE}`);
  return newest.id;
}

/** Undefined if the user picks none. */
export async function pickChatSession(cwd: string, io: Io): Promise<string | undefined> {
  const home = stateFolder(io);
  const rows = listChatSessions(home, cwd);
  if (rows.length === 0) throw new UsageError(`--resume: ${cwd} ${NONE}`);
  const terminal = new Terminal(io, {
    screen: new Screen(io.stdout),
    history: () => [],
    menu: { slashes: [], paths: () => [] },
    pastes: new Pastes(),
    mode: () => '',
    changeMode: () => undefined,
    expand: () => undefined,
  });
  try {
    const at = await terminal.choose(
      'session to resume',
      rows.map((row) => chatSessionChoice(row, (id) => shortenStoredId(home, id))),
    );
    return at === undefined ? undefined : rows[at]?.id;
  } finally {
    terminal.close();
  }
}
