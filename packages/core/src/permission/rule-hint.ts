// Rule hints: after a denial, suggests the narrowest rules that would allow the call.
//
// Guarantees
//   1. A hint never suggests allowing the whole shell. If no pattern can cover the command, it suggests only --yes.
//   2. A hint never names an option that would not help. An ask rule wins over --allow, and a deny rule over --yes.
//      drover's file tools never write outside the workspace or in .git, whatever is allowed.

import type { Obstacle } from '../agent/calls/calls.ts';
import { shellPatternCovers } from './shell/command-pattern.ts';
import { plainShellCommands } from './shell/plain-commands.ts';
import { SHELL } from './rules.ts';
import { loadShellParser } from './shell/shell-parser.ts';

const SUBJECT_CHARS_MAX = 200;
const RULES_MAX = 4;

const FILE_TOOLS: ReadonlySet<string> = new Set(['write', 'edit']);

export type Refused = { readonly tool: string; readonly subject: string; readonly obstacle?: Obstacle };

/** Returns how to allow the call, such as `--allow 'shell(pnpm build)' or --yes would allow it`. */
export async function ruleHintFor(refused: Refused): Promise<string> {
  const { tool, obstacle } = refused;
  switch (obstacle) {
    case 'ask-rule':
      return '--yes would allow it, and --allow would not: an ask rule wins over an allow rule';
    case 'deny-doubt':
      return 'neither --allow nor --yes would allow it: a deny rule wins over both';
    case 'outside':
      if (!FILE_TOOLS.has(tool)) return `--allow '${tool}' or --yes would allow it`;
      return 'no rule lets a file tool write there; --writable PATH lets contained commands do so';
    case 'git-folder':
      if (!FILE_TOOLS.has(tool)) break;
      return 'no rule lets a file tool write there; the commit tool makes commits';
    case undefined:
  }
  return `${await flagsOfRuleHint(refused)} would allow it`;
}

/** Returns flags, such as `--allow 'shell(pnpm build)' or --yes`. */
async function flagsOfRuleHint(refused: Refused): Promise<string> {
  const rules = refused.tool === SHELL ? await shellRuleHints(refused.subject) : [plainRuleHint(refused)];
  return [...(rules.length === 0 ? [] : [rules.map(ruleHintFlag).join(' ')]), '--yes'].join(' or ');
}

function plainRuleHint({ tool, subject }: Refused): string {
  const isPattern = subject !== '' && subject.length <= SUBJECT_CHARS_MAX && !/[\n*]/.test(subject);
  return isPattern ? `${tool}(${subject})` : tool;
}

/** Returns one rule per simple command, or none if a part of the command line cannot be covered. */
async function shellRuleHints(command: string): Promise<readonly string[]> {
  if (command.length > SUBJECT_CHARS_MAX) return [];
  const commands = plainShellCommands(command, await loadShellParser()) ?? [];
  const isCoverable = commands.every((words) => words.join('') !== '' && shellPatternCovers(words.join(' '), words));
  const rules = [...new Set(commands.map((words) => `${SHELL}(${words.join(' ')})`))];
  return isCoverable && rules.length <= RULES_MAX && !rules.some((rule) => rule.includes('*')) ? rules : [];
}

function ruleHintFlag(rule: string): string {
  return `--allow '${rule.replaceAll("'", `'\\''`)}'`;
}
