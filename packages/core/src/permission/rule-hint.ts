// The hint that a refusal gives: the narrowest rules that would allow the call.
//
// A hint never names the whole shell. A command that no pattern can cover gets no rule, only --yes.

import { covers } from './command-pattern.ts';
import { plainCommands } from './plain-commands.ts';
import { SHELL } from './rules.ts';
import { loadParser } from './shell-parser.ts';

const SUBJECT_CHARS_MAX = 200;
const RULES_MAX = 4;

export type Refused = { readonly tool: string; readonly subject: string };

/** Returns the flags that would allow the call, such as `--allow 'shell(pnpm build)' or --yes`. */
export async function allowingFlags(refused: Refused): Promise<string> {
  const rules = refused.tool === SHELL ? await shellRules(refused.subject) : [plainRule(refused)];
  return [...(rules.length === 0 ? [] : [rules.map(flag).join(' ')]), '--yes'].join(' or ');
}

function plainRule({ tool, subject }: Refused): string {
  const isPattern = subject !== '' && subject.length <= SUBJECT_CHARS_MAX && !/[\n*]/.test(subject);
  return isPattern ? `${tool}(${subject})` : tool;
}

/** One rule for each simple command, or none if a part of the command line has no rule that covers it. */
async function shellRules(command: string): Promise<readonly string[]> {
  if (command.length > SUBJECT_CHARS_MAX) return [];
  const commands = plainCommands(command, await loadParser()) ?? [];
  const isCoverable = commands.every((words) => words.join('') !== '' && covers(words.join(' '), words));
  const rules = [...new Set(commands.map((words) => `${SHELL}(${words.join(' ')})`))];
  return isCoverable && rules.length <= RULES_MAX && !rules.some((rule) => rule.includes('*')) ? rules : [];
}

function flag(rule: string): string {
  return `--allow '${rule.replaceAll("'", `'\\''`)}'`;
}
