// Links on a terminal: OSC 8 sequences where the terminal knows them, and only to addresses that a browser opens.

import type { Io } from '../../io.ts';

const ADDRESS_CHARS_MAX = 2_000;

/** The address of a link as plain ASCII; undefined if it is not http, https or mailto. */
export function safeLinkAddress(href: string): string | undefined {
  if (href.length > ADDRESS_CHARS_MAX || !/^(https?:\/\/|mailto:)/i.test(href)) return undefined;
  try {
    const address = new URL(href).href;
    return /^[!-~]+$/.test(address) ? address : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** `href` comes from safeLinkAddress, so it cannot end the sequence early. */
export function terminalLink(text: string, href: string): string {
  return `\u001B]8;;${href}\u001B\\${text}\u001B]8;;\u001B\\`;
}

/** Whether the words of a link hide where it leads: they look like an address, and it is another one. */
export function isDisguisedLink(words: string, href: string): boolean {
  const bare = (text: string): string =>
    text
      .trim()
      .toLowerCase()
      .replace(/^(https?:\/\/|mailto:)/, '')
      .replace(/\/$/, '');
  return /^(https?:\/\/)?[\w-]+(\.[\w-]+)+(\/|$)/i.test(words.trim()) && bare(words) !== bare(href);
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
