// Links on a terminal: OSC 8 sequences where the terminal knows them.

import type { Io } from '../../io.ts';

/** `href` comes from safeLinkAddress, so it cannot end the sequence early. */
export function terminalLink(text: string, href: string): string {
  return `\u001B]8;;${href}\u001B\\${text}\u001B]8;;\u001B\\`;
}

const PROGRAMS = new Set(['iTerm.app', 'WezTerm', 'vscode', 'ghostty', 'Hyper', 'rio', 'Tabby']);
const VTE_MIN = 5_000;

/** No query tells whether a terminal knows OSC 8, so its name decides. FORCE_HYPERLINK overrides. */
export function terminalKnowsLinks(env: Io['env'], isTTY: boolean): boolean {
  const forced = env['FORCE_HYPERLINK'];
  if (forced !== undefined && forced !== '') return forced !== '0';
  if (!isTTY || env['TERM'] === 'dumb' || env['TMUX'] !== undefined) return false;
  if (PROGRAMS.has(env['TERM_PROGRAM'] ?? '') || env['WT_SESSION'] !== undefined) return true;
  return env['TERM'] === 'xterm-kitty' || Number(env['VTE_VERSION'] ?? 0) >= VTE_MIN;
}
