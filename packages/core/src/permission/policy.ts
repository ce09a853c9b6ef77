// The policy: whether a call runs by itself, is asked about, or is refused.
//
// The order: deny rules, always, also with --yes; what the user has answered for good; ask rules; allow
// rules; then the defaults. Reading is allowed; writing in a workspace, too, but for the folder in which
// git keeps its settings and hooks, since those are run; shell commands if every simple command in
// them is known to be harmless, or if the whole is one of the user's gates. Everything else is asked about.

import { relative } from 'node:path';
import type { Verdict } from '../agent/calls.ts';
import type { Json } from '../json.ts';
import type { Tool } from '../tools/tool.ts';
import { objectionTo, objectionToSurroundings } from './harmless.ts';
import { isInside, realPath, realRoot } from './paths.ts';
import { type Effect, matches, matchesPath, type Rule, SHELL, wildcard } from './rules.ts';
import { type SimpleCommand, understand, type Understanding } from './shell-grammar.ts';
import type { Place } from './shell-options.ts';
import { loadParser } from './shell-parser.ts';
import { findMatch, type Scan, scanCommand } from './shell-scan.ts';

const FOLDERS_MAX = 16;

export type Policy = {
  readonly root: string; // the workspace: where commands start, and what paths are relative to
  readonly rules: readonly Rule[];
  readonly yes: boolean; // what would be asked about is allowed
  readonly workspace: boolean; // writing in it needs no consent
  readonly gates: readonly string[];
  /** Answers for good, by answerKey. Absent where answers are kept elsewhere. */
  readonly remembered?: ReadonlyMap<string, boolean>;
};

export function answerKey(tool: string, subject: string): string {
  return `${tool} ${subject}`;
}

export async function judge(policy: Policy, tool: Tool, input: Json): Promise<Verdict> {
  const subject = tool.subject(input);
  const verdict = tool.name === SHELL ? await judgeShell(policy, tool, subject) : judgePlain(policy, tool, subject);
  return verdict.effect === 'ask' && policy.yes ? { effect: 'allow', why: '--yes' } : verdict;
}

function judgePlain(policy: Policy, tool: Tool, subject: string): Verdict {
  const ruled = (effect: Effect) =>
    policy.rules.find((rule) => rule.effect === effect && matches(rule, tool, subject, policy.root));
  const denied = ruled('deny');
  if (denied !== undefined) return byRule(denied);
  const answered = rememberedFor(policy, tool, subject);
  if (answered !== undefined) return answered;
  const rule = ruled('ask') ?? ruled('allow');
  return rule === undefined ? byDefault(policy, tool, subject) : byRule(rule);
}

function byDefault({ root, workspace }: Policy, tool: Tool, subject: string): Verdict {
  switch (tool.access) {
    case 'read':
    case 'none':
      return { effect: 'allow', why: 'it changes nothing' };
    case 'write': {
      if (!workspace) return { effect: 'ask', why: 'it writes' };
      const folder = realRoot(root);
      const place = realPath(folder, subject);
      if (!isInside(folder, place)) return { effect: 'ask', why: 'it writes outside the workspace' };
      const isGit = /(?:^|[/\\])(?:\.git|git~\d+)(?:[/\\]|$)/i.test(`${subject}/${relative(folder, place)}`);
      if (isGit) return { effect: 'ask', why: 'what git keeps in .git can run programs' };
      return { effect: 'allow', why: 'it writes in the workspace' };
    }
    case 'run':
      return { effect: 'ask', why: 'it runs something' };
  }
}

function byRule({ effect, text }: Rule): Verdict {
  switch (effect) {
    case 'allow':
      return { effect, why: `allowed by the rule ${text}` };
    case 'ask':
      return { effect, why: `the rule ${text} wants it asked about` };
    case 'deny':
      return { effect, why: `denied by the rule ${text}` };
  }
}

function rememberedFor({ remembered }: Policy, tool: Tool, subject: string): Verdict | undefined {
  const answer = remembered?.get(answerKey(tool.name, subject));
  if (answer === undefined) return undefined;
  return { effect: answer ? 'allow' : 'deny', why: `the user said ${answer ? 'yes' : 'no'} for good` };
}

async function judgeShell(policy: Policy, tool: Tool, command: string): Promise<Verdict> {
  const rules = policy.rules.filter((rule) => rule.tool === SHELL || rule.tool === '*');
  const ruled = (effect: Effect) => rules.filter((rule) => rule.effect === effect);
  const parser = await loadParser();
  const isRestricted = policy.rules.some(({ effect }) => effect !== 'allow');
  const scan = isRestricted ? scanCommand(command, parser) : undefined;

  const denied = scan && (verdictOfScan(ruled('deny'), scan, policy) ?? deniedPath(policy, scan));
  if (denied !== undefined) return denied;
  const answered = rememberedFor(policy, tool, command);
  if (answered !== undefined) return answered;
  const asked = scan && verdictOfScan(ruled('ask'), scan, policy);
  if (asked !== undefined) return asked;

  const allowed = ruled('allow');
  const everything = allowed.find(({ pattern }) => pattern === undefined);
  if (everything !== undefined) return byRule(everything);
  if (policy.gates.some((gate) => gate.trim() === command.trim())) return { effect: 'allow', why: 'it is a gate' };
  const understanding = understand(command, parser);
  return judgeCommands(policy, allowed, understanding);
}

function verdictOfScan(rules: readonly Rule[], scan: Scan, { yes }: Policy): Verdict | undefined {
  let doubt: string | undefined;
  for (const rule of rules) {
    const found = rule.pattern === undefined ? 'yes' : findMatch(rule.pattern, scan);
    if (found === 'yes') return byRule(rule);
    const unseen = found === 'maybe' ? 'what it runs is computed' : scan.unseen;
    doubt ??= unseen && `it can't be told whether the rule ${rule.text} holds, since ${unseen}`;
    if (doubt !== undefined && rule.effect === 'deny' && yes) return { effect: 'deny', why: doubt };
  }
  return doubt === undefined ? undefined : { effect: 'ask', why: doubt };
}

// Who may not be read by one tool is not read by another.
function deniedPath({ rules, root }: Policy, { words }: Scan): Verdict | undefined {
  const paths = rules.filter(
    ({ effect, tool, pattern }) => effect === 'deny' && isPathRule(tool) && pattern !== undefined,
  );
  for (const rule of paths) {
    for (const word of words) if (matchesPath(rule, word, root)) return byRule(rule);
  }
  return undefined;
}

function isPathRule(tool: string): boolean {
  return tool === 'read' || tool === 'write';
}

function judgeCommands(policy: Policy, allowed: readonly Rule[], understanding: Understanding): Verdict {
  if (!understanding.understood) return { effect: 'ask', why: understanding.why };
  const { commands } = understanding;
  const place = placeOf(realRoot(policy.root), commands);
  if (place === undefined) return { effect: 'ask', why: 'it goes through too many folders' };
  const restricting = policy.rules.find(({ effect, tool }) => effect !== 'allow' && tool === 'read');
  for (const command of commands) {
    if (isAllowed(command, allowed)) {
      const objection = objectionToSurroundings(command, place);
      if (objection !== undefined) return { effect: 'ask', why: objection };
      continue;
    }
    const objection = objectionTo(command, place);
    if (objection !== undefined) return { effect: 'ask', why: objection };
    if (restricting !== undefined) {
      return { effect: 'ask', why: `a shell command may read what the rule ${restricting.text} is about` };
    }
  }
  return { effect: 'allow', why: 'its commands are harmless, or allowed by a rule' };
}

function isAllowed({ name, words }: SimpleCommand, rules: readonly Rule[]): boolean {
  const text = words.map((word) => word.text).join(' ');
  return name !== '' && rules.some(({ pattern = '*' }) => wildcard(pattern, text));
}

// A cd may fail, or be in a branch that isn't taken: what follows runs before it or after.
function placeOf(root: string, commands: readonly SimpleCommand[]): Place | undefined {
  let folders = [root];
  for (const { name, words } of commands) {
    const target = name === 'cd' ? words[1]?.text : undefined;
    if (target === undefined) continue;
    folders = [...new Set([...folders, ...folders.map((folder) => realPath(folder, target))])];
    if (folders.length > FOLDERS_MAX) return undefined;
  }
  return { root, folders };
}
