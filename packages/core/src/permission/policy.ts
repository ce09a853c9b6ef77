// Permission policy: decides whether a call runs without approval, needs approval, or is denied.
//
// Order: deny rules (even with --yes), remembered answers, ask rules, allow rules, then the default.
//
// Defaults
//   Reading is allowed.
//   Writing is allowed in a workspace, except in .git, because git runs programs named in its settings and hooks.
//   In the user's own folder, files that other programs run later (run-later.ts) also need approval.
//   A shell command is allowed inside the sandbox and needs approval outside. Everything else needs approval.
//
// Shell rules
//   1. An allow rule covers only a plain command line (plain-commands.ts), and every command in it needs a rule.
//   2. A deny or ask rule applies if it matches any command that the scan finds (shell-scan.ts).
//   3. Outside the sandbox, a command with an unseen part needs approval if a deny or ask rule could apply.
//      With --yes, such a deny rule denies it.
//   4. Inside the sandbox, a shell rule is only a tripwire: a match counts, an unseen part does not.
//      The sandbox is the boundary.
//   5. A path denied to the file tools is also denied to shell commands that name it.

import { relative } from 'node:path';
import type { Verdict } from '../agent/calls/calls.ts';
import type { Json } from '@drover/protocol/json';
import type { Tool } from '../tools/tool.ts';
import { shellPatternCovers, shellPatternHoldsFor } from './shell/command-pattern.ts';
import { isInside, realPath, realRoot } from './paths.ts';
import { plainShellCommands } from './shell/plain-commands.ts';
import { isRunLater } from './run-later.ts';
import { type Effect, doesPermissionRuleMatch, doesRuleMatchPath, type Rule, SHELL } from './rules.ts';
import { loadShellParser } from './shell/shell-parser.ts';
import { type Scan, scanShellCommand } from './shell/shell-scan.ts';

export type Policy = {
  readonly root: string; // the workspace: commands start in it, and paths are relative to it
  readonly rules: readonly Rule[];
  readonly yes: boolean; // allow every call that would need approval
  readonly workspace: boolean; // writing inside `root` needs no approval
  /** The workspace is the user's own folder: files that other programs run later need approval. */
  readonly isOwnFolder?: boolean;
  /** Real paths of further files that other programs run later, or of folders that hold them. */
  readonly runLater?: readonly string[];
  readonly contained: boolean; // shell commands run inside the sandbox
  /** Answers that hold for the rest of the run, by permissionAnswerKey. Absent if another process keeps them. */
  readonly remembered?: ReadonlyMap<string, boolean>;
};

export function permissionAnswerKey(tool: string, subject: string): string {
  return `${tool} ${subject}`;
}

export async function judgeCall(policy: Policy, tool: Tool, input: Json): Promise<Verdict> {
  const subject = tool.subject(input);
  const verdict =
    tool.name === SHELL ? await judgeShellCommand(policy, tool, subject) : judgePlainCall(policy, tool, subject);
  return verdict.effect === 'ask' && policy.yes ? { effect: 'allow', why: '--yes' } : verdict;
}

function judgePlainCall(policy: Policy, tool: Tool, subject: string): Verdict {
  const ruled = (effect: Effect) =>
    policy.rules.find(
      (rule) => rule.effect === effect && doesPermissionRuleMatch(rule, { tool, subject }, policy.root),
    );
  const denied = ruled('deny');
  if (denied !== undefined) return judgeByRule(denied);
  const answered = rememberedPermission(policy, tool, subject);
  if (answered !== undefined) return answered;
  const asked = ruled('ask');
  if (asked !== undefined) {
    const obstacle = judgeForbiddenPlace(policy, tool, subject);
    return { ...judgeByRule(asked), ...(obstacle && { obstacle }) };
  }
  const allowed = ruled('allow');
  return allowed === undefined ? judgeByDefault(policy, tool, subject) : judgeByRule(allowed);
}

function judgeByDefault(policy: Policy, tool: Tool, subject: string): Verdict {
  const { root, workspace, isOwnFolder = false, runLater = [] } = policy;
  switch (tool.access) {
    case 'read':
    case 'none':
      return { effect: 'allow', why: 'it changes nothing' };
    case 'write': {
      const obstacle = judgeForbiddenPlace(policy, tool, subject);
      if (!workspace) return { effect: 'ask', why: 'it writes', ...(obstacle && { obstacle }) };
      if (obstacle === 'outside') return { effect: 'ask', why: 'it writes outside the workspace', obstacle };
      if (obstacle === 'git-folder') return { effect: 'ask', why: 'what git keeps in .git can run programs', obstacle };
      const folder = realRoot(root);
      const real = realPath(folder, subject);
      const isLater =
        [subject, relative(folder, real)].some(isRunLater) || runLater.some((each) => isInside(each, real));
      if (isOwnFolder && isLater) return { effect: 'ask', why: 'other programs run what it says there' };
      return { effect: 'allow', why: 'it writes in the workspace' };
    }
    case 'run':
      if (tool.served !== undefined)
        return { effect: 'ask', why: `it is a tool of the MCP server ${tool.served.server}` };
      return { effect: 'ask', why: 'it runs something' };
  }
}

/** Why a write always needs approval: it goes outside the workspace or into .git. */
function judgeForbiddenPlace(
  { root }: Policy,
  { access }: Tool,
  subject: string,
): 'outside' | 'git-folder' | undefined {
  if (access !== 'write') return undefined;
  const folder = realRoot(root);
  const place = realPath(folder, subject);
  if (!isInside(folder, place)) return 'outside';
  const isGit = /(?:^|[/\\])(?:\.git|git~\d+)(?:[/\\]|$)/i.test(`${subject}/${relative(folder, place)}`);
  return isGit ? 'git-folder' : undefined;
}

function judgeByRule({ effect, text }: Rule): Verdict {
  switch (effect) {
    case 'allow':
      return { effect, why: `allowed by the rule ${text}` };
    case 'ask':
      return { effect, why: `the rule ${text} wants it asked about`, obstacle: 'ask-rule' };
    case 'deny':
      return { effect, why: `denied by the rule ${text}` };
  }
}

function rememberedPermission({ remembered }: Policy, tool: Tool, subject: string): Verdict | undefined {
  const answer = remembered?.get(permissionAnswerKey(tool.name, subject));
  if (answer === undefined) return undefined;
  return { effect: answer ? 'allow' : 'deny', why: `the user said ${answer ? 'yes' : 'no'} for good` };
}

async function judgeShellCommand(policy: Policy, tool: Tool, command: string): Promise<Verdict> {
  const ruled = (effect: Effect) =>
    policy.rules.filter((rule) => rule.effect === effect && (rule.tool === SHELL || rule.tool === '*'));
  const isRestricted = policy.rules.some(({ effect }) => effect !== 'allow');
  const scan = isRestricted ? scanShellCommand(command, await loadShellParser()) : undefined;

  const denied = scan && (restrictShellCommand(ruled('deny'), scan, policy) ?? deniedPathOfCall(policy, scan));
  if (denied !== undefined) return denied;
  const answered = rememberedPermission(policy, tool, command);
  if (answered !== undefined) return answered;
  const asked = scan && restrictShellCommand(ruled('ask'), scan, policy);
  if (asked !== undefined) return asked;
  const allowed = await permitShellCommand(ruled('allow'), command);
  if (allowed !== undefined) return allowed;
  return policy.contained
    ? { effect: 'allow', why: 'it runs inside the sandbox' }
    : { effect: 'ask', why: 'it would run outside a sandbox' };
}

/** The verdict of deny or ask rules; undefined if none applies to the command. */
function restrictShellCommand(rules: readonly Rule[], scan: Scan, { yes, contained }: Policy): Verdict | undefined {
  let doubt: Verdict | undefined;
  for (const rule of rules) {
    const { pattern } = rule;
    const found = pattern === undefined ? ['yes'] : scan.commands.map((words) => shellPatternHoldsFor(pattern, words));
    if (found.includes('yes')) return judgeByRule(rule);
    if (contained) continue;
    const unseen = found.includes('maybe') ? 'what it runs is computed' : scan.unseen;
    if (unseen === undefined) continue;
    const why = `it can't be told whether the rule ${rule.text} holds, since ${unseen}`;
    if (rule.effect === 'deny' && yes) return { effect: 'deny', why: doubt?.why ?? why };
    doubt ??= { effect: 'ask', why, obstacle: rule.effect === 'deny' ? 'deny-doubt' : 'ask-rule' };
  }
  return doubt;
}

function deniedPathOfCall({ rules, root }: Policy, { words }: Scan): Verdict | undefined {
  const denied = rules.find(
    (rule) =>
      rule.effect === 'deny' &&
      (rule.tool === 'read' || rule.tool === 'write') &&
      rule.pattern !== undefined &&
      words.values().some((word) => doesRuleMatchPath(rule, word, root)),
  );
  return denied && judgeByRule(denied);
}

/** The verdict of allow rules; undefined if they leave a part of the command uncovered. */
async function permitShellCommand(rules: readonly Rule[], command: string): Promise<Verdict | undefined> {
  const everything = rules.find(({ pattern }) => pattern === undefined);
  if (everything !== undefined || rules.length === 0) return everything && judgeByRule(everything);
  const commands = plainShellCommands(command, await loadShellParser());
  const used = commands?.map((words) => rules.find(({ pattern = '*' }) => shellPatternCovers(pattern, words))?.text);
  if (used === undefined || used.includes(undefined)) return undefined;
  const texts = [...new Set(used)];
  return { effect: 'allow', why: `allowed by the rule${texts.length > 1 ? 's' : ''} ${texts.join(', ')}` };
}
