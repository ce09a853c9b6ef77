// Denied paths: the paths that deny rules name, for a sandbox to cover with mounts.
//
// A pattern without wildcards, or one that ends in `/**`, is one path. Other patterns are searched in the folder.
// Files that a command creates later are not covered: that command knows their content anyway.

import { readdirSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import type { Denied } from '../tools/tool.ts';
import { doesRuleMatchPath, type Rule } from './rules.ts';

const ENTRIES_MAX = 50_000;

export type DeniedPaths = {
  /** Paths that must not be read. */
  readonly hidden: readonly string[];
  /** Paths that must not be written. */
  readonly sealed: readonly string[];
};

/** Paths that search tools must leave out, as part of a tool context. */
export function pathsDeniedIn(rules: readonly Rule[], root: string): { readonly denied?: Denied } {
  const denying = rules.filter(
    ({ effect, tool, pattern }) => effect === 'deny' && tool === 'read' && pattern !== undefined,
  );
  if (denying.length === 0) return {};
  const patterns = denying.map(({ pattern = '' }) => pattern.replace(/^\.\//, ''));
  return { denied: { patterns, matches: (path) => denying.some((rule) => doesRuleMatchPath(rule, path, root)) } };
}

/** `root` is the folder that relative patterns start from. */
export function deniedPaths(rules: readonly Rule[], root: string): DeniedPaths {
  const denied = (tool: string) =>
    rules.filter((rule) => rule.effect === 'deny' && rule.tool === tool).flatMap((rule) => pathsOfDenyRule(rule, root));
  return {
    hidden: denied('read').filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined),
    sealed: denied('write').map(coverableDeniedPath),
  };
}

/** The path, or its topmost missing parent folder: a mount can cover only that. */
function coverableDeniedPath(path: string): string {
  const above = dirname(path);
  return statSync(above, { throwIfNoEntry: false }) === undefined ? coverableDeniedPath(above) : path;
}

function pathsOfDenyRule(rule: Rule, root: string): readonly string[] {
  const { pattern } = rule;
  // A rule without a pattern is about the tool, not about files.
  if (pattern === undefined) return [];
  const plain = pattern.replace(/^\.\//, '').replace(/\/(?:\*\*)?$/, '');
  const path = isAbsolute(plain) ? plain : join(root, plain);
  const isInside = !relative(root, path).startsWith('..') && path !== root;
  if (!/[*?{[]/.test(plain)) return isInside ? [path] : [];
  return existingPathsOfDenyRule(rule, root);
}

function existingPathsOfDenyRule(rule: Rule, root: string): readonly string[] {
  const paths: string[] = [];
  const waiting = [root];
  let looked = 0;
  for (let folder = waiting.pop(); folder !== undefined && looked < ENTRIES_MAX; folder = waiting.pop()) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      looked += 1;
      const path = join(folder, entry.name);
      if (!entry.isSymbolicLink() && doesRuleMatchPath(rule, relative(root, path), root)) paths.push(path);
      else if (entry.isDirectory() && entry.name !== '.git') waiting.push(path);
    }
  }
  return paths;
}
