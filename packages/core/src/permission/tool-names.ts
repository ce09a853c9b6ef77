// Tool names that rules may use: drover's own tools, and other agents' names for them.

import { SERVED_PREFIX } from '../tools/served/names.ts';
import { MCP } from './rules.ts';

/** Every tool of drover. A test compares this list with the tools. */
export const TOOL_NAMES: readonly string[] = [
  'read',
  'write',
  'edit',
  'list',
  'glob',
  'grep',
  'shell',
  'git',
  'commit',
  'submit_plan',
  'submit_result',
  'find_tools',
  'skill',
];

/** Whether a rule may name it: a tool of drover, mcp for all tools of MCP servers, or one of them. */
export function isToolNameForRule(name: string): boolean {
  return TOOL_NAMES.includes(name) || name === MCP || name.startsWith(SERVED_PREFIX);
}

const OTHER_WORDS: Readonly<Record<string, readonly string[]>> = {
  shell: ['bash', 'sh', 'zsh', 'cmd', 'command', 'exec', 'execute', 'powershell', 'run', 'run_command', 'terminal'],
  read: ['cat', 'open', 'read_file', 'readfile', 'view'],
  write: ['create', 'create_file', 'write_file', 'writefile'],
  edit: ['apply_patch', 'edit_file', 'multiedit', 'patch', 'replace', 'str_replace'],
  list: ['dir', 'list_files', 'ls'],
  glob: ['find'],
  grep: ['rg', 'ripgrep', 'search'],
};

/** Returns drover's name for a tool that other agents name differently, such as bash. */
export function usualToolNameOfRule(word: string): string | undefined {
  const lower = word.toLowerCase();
  return Object.keys(OTHER_WORDS).find((name) => OTHER_WORDS[name]?.includes(lower));
}
