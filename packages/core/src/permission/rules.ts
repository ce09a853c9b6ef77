// Permission rules: which calls the user allows, denies or wants to be asked about, by tool and subject.
//
//   read                 every call of the tool, and of every tool that only reads
//   write(src/**)        paths relative to the workspace; * matches within a folder, ** across folders
//   shell(pnpm test*)    one simple command, word by word; see command-pattern.ts
//   mcp(github.get_*)    tools of an MCP server: server.tool, where * is any text; mcp(github.*) is the whole server
//   *                    every call of every tool
//
// `read` and `write` stand for every tool with that access: denying write(secrets/**) also denies edits.
// Path rules follow links, so a link cannot bypass them.

import { isAbsolute, relative, resolve } from 'node:path';
import { UsageError } from '../errors.ts';
import type { Tool } from '../tools/tool.ts';
import { realPath, realRoot } from './paths.ts';

export type Effect = 'allow' | 'ask' | 'deny';

export type Rule = {
  readonly effect: Effect;
  readonly tool: string; // '*' for every tool
  readonly pattern?: string; // absent for every subject
  readonly text: string; // as the user wrote it
};

export const SHELL = 'shell';
/** Stands for all tools of MCP servers; the subject is server.tool. */
export const MCP = 'mcp';

// The subjects of these tools are command words, not paths.
const WORDY: ReadonlySet<string> = new Set([SHELL, 'git']);

const EXAMPLE = 'a right one is shell(pnpm test*), write(src/**), read or *';

/** Parses a rule. Throws UsageError with the position of the problem. */
export function parsePermissionRule(text: string, effect: Effect): Rule {
  const rule = text.trim();
  const start = text.indexOf(rule);
  const problem = (at: number, what: string) =>
    new UsageError(`${JSON.stringify(text)} is no rule: ${what} at position ${start + at + 1}; ${EXAMPLE}`);
  if (rule === '') throw problem(0, 'it is empty');
  if (rule === '*') return { effect, tool: '*', text: rule };

  const tool = /^[A-Za-z][\w-]*/.exec(rule)?.[0];
  if (tool === undefined) throw problem(0, `the name of a tool is expected, not ${JSON.stringify(rule[0])},`);
  const rest = rule.slice(tool.length);
  if (rest === '') return { effect, tool, text: rule };
  if (!rest.startsWith('(')) throw problem(tool.length, `"(" or the end is expected, not ${JSON.stringify(rest[0])},`);
  if (!rest.endsWith(')')) throw problem(rule.length, `the ")" is missing that closes "(", expected`);
  const pattern = rest.slice(1, -1).trim();
  if (pattern === '') throw problem(tool.length + 1, `a pattern is expected between the parentheses`);
  // shell(*) means shell: any command, even one that is not plain.
  return pattern === '*' || pattern === '**' ? { effect, tool, text: rule } : { effect, tool, pattern, text: rule };
}

/** A call as rules see it. */
type RuledCall = { readonly tool: Tool; readonly subject: string };

/** Whether the rule applies to this call. The policy judges shell commands itself. */
export function doesPermissionRuleMatch(rule: Rule, { tool, subject }: RuledCall, root: string): boolean {
  if (!doesRuleConcernTool(rule, tool)) return false;
  if (rule.pattern === undefined) return true;
  if (WORDY.has(tool.name) || (tool.access !== 'read' && tool.access !== 'write')) {
    return doesRuleWildcardMatch(rule.pattern, subject);
  }
  return doesRuleMatchPath(rule, subject, root);
}

function doesRuleConcernTool(rule: Rule, tool: Tool): boolean {
  if (rule.tool === '*' || rule.tool === tool.name || (rule.tool === MCP && tool.served !== undefined)) return true;
  return rule.tool === tool.access && (rule.tool === 'read' || rule.tool === 'write');
}

export function doesRuleMatchPath({ pattern = '**', effect }: Rule, path: string, root: string): boolean {
  const seen = relative(root, resolve(root, path));
  const folder = realRoot(root);
  const real = relative(folder, realPath(folder, path));
  const fits = (inside: string) => {
    if (isAbsolute(pattern)) return globOfPermissionRule(pattern).test(resolve(root, inside));
    if (effect === 'allow' && (inside.startsWith('..') || isAbsolute(inside))) return false;
    return globOfPermissionRule(pattern).test(inside === '' ? '.' : inside);
  };
  return effect === 'allow' ? fits(seen) && fits(real) : fits(seen) || fits(real);
}

/** Matches a pattern in which `*` is any text, even none. Linear per `*`, because the texts come from a model. */
export function doesRuleWildcardMatch(pattern: string, text: string): boolean {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.pop();
  if (tail === undefined) return pattern === text;
  if (!text.startsWith(head)) return false;
  let at = head.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return text.length - tail.length >= at && text.endsWith(tail);
}

const globs = new Map<string, RegExp>();

function globOfPermissionRule(pattern: string): RegExp {
  const known = globs.get(pattern);
  if (known !== undefined) return known;
  const plain = pattern.replace(/^\.\//, '').replace(/\/+$/, '');
  const source = plain.replace(/\*\*\/|\/\*\*$|\*\*|\*|\?|\{[^{}]*\}|[\\^$+.()|[\]{}]/g, (part) => {
    switch (part) {
      case '**/':
        return '(?:[^/]+/)*';
      case '/**':
        return '(?:/.*)?';
      case '**':
        return '.*';
      case '*':
        return '[^/]*';
      case '?':
        return '[^/]';
      default:
        return part.length > 1 ? alternativesOfRule(part) : `\\${part}`;
    }
  });
  // A name without wildcards may be a folder, and then also matches everything in it.
  const below = /[*?{]/.test(plain) ? '' : '(?:/.*)?';
  const glob = new RegExp(`^${source}${below}$`, 's');
  globs.set(pattern, glob);
  return glob;
}

function alternativesOfRule(braces: string): string {
  const each = braces
    .slice(1, -1)
    .split(',')
    .map((part) => part.replace(/[\\^$+.()|[\]?*]/g, (character) => (character === '*' ? '[^/]*' : `\\${character}`)));
  return `(?:${each.join('|')})`;
}
