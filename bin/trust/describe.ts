// Describes what a file of a project would allow, for the user who decides about it: facts, then its content.
//
// A file that cannot be parsed has no facts; its content is shown all the same.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import type { ProjectKind } from '@drover/trust/inventory';
import type { ReadEntry } from '@drover/trust/project-file';

const LINES_MAX = 60;
const FILES_MAX = 30;
const SCRIPT = /\.(?:sh|bash|zsh|fish|py|js|mjs|cjs|ts|rb|pl|php|lua|ps1|bat|cmd)$/i;

export type Described = { readonly facts: readonly string[]; readonly lines: readonly string[] };

/** `kind` is undefined for a file that the user named. A config is shown whole: its lines are its facts. */
export function describeTrustFile(kind: ProjectKind | undefined, read: ReadEntry): Described {
  const all = read.text.trimEnd().split('\n');
  const most = kind === 'config' || kind === undefined ? Infinity : LINES_MAX;
  const left = all.length - most;
  const lines = left > 0 ? [...all.slice(0, most), `… ${left} more lines; read the file before you approve it`] : all;
  return { facts: [...trustFileFacts(kind, read), ...unseenCharactersIn(read.text)], lines };
}

function trustFileFacts(kind: ProjectKind | undefined, { text, files = [] }: ReadEntry): readonly string[] {
  switch (kind) {
    case 'mcp':
      return trustJsonEntries(parseTrustJson(text)['mcpServers']).map(([name, server]) =>
        trustServerFact(name, server),
      );
    case 'hooks':
      return trustJsonEntries(parseTrustJson(text)['hooks']).flatMap(([event, groups]) =>
        trustHookFacts(event, groups),
      );
    case 'skill':
      return files.length < 2 ? [] : trustSkillFacts(files);
    case 'config':
    case 'agent':
    case undefined:
      return [];
  }
}

function trustServerFact(name: string, server: Json): string {
  const { command, args, url, env } = isJsonObject(server) ? server : {};
  const variables = trustJsonEntries(env).map(([variable]) => variable);
  const set = variables.length === 0 ? '' : ` (sets ${variables.join(', ')})`;
  if (typeof url === 'string') return `connects to ${url} as the server ${name}`;
  const words = [command, ...(Array.isArray(args) ? args : [])].map(String).join(' ');
  return `starts the server ${name}: ${words}${set}`;
}

function trustHookFacts(event: string, groups: Json): readonly string[] {
  return trustJsonList(groups).flatMap((group) => {
    const { matcher, hooks } = isJsonObject(group) ? group : {};
    const of = typeof matcher === 'string' && matcher !== '' ? ` of ${matcher}` : '';
    return trustJsonList(hooks).map((hook) => {
      const command = isJsonObject(hook) ? hook['command'] : undefined;
      return `runs at ${event}${of}: ${typeof command === 'string' ? command : JSON.stringify(hook)}`;
    });
  });
}

function trustSkillFacts(files: NonNullable<ReadEntry['files']>): readonly string[] {
  const programs = files.filter(({ name, isExecutable }) => isExecutable || SCRIPT.test(name)).map(({ name }) => name);
  const shown = programs.slice(0, FILES_MAX).join(', ');
  const more = programs.length > FILES_MAX ? ` and ${programs.length - FILES_MAX} more` : '';
  return [
    `brings ${files.length} files`,
    ...(programs.length === 0 ? [] : [`brings programs that agents may run: ${shown}${more}`]),
  ];
}

// Marks that turn text round, tag characters, and control characters: a reader would not see what they hide.
const UNSEEN = /(?!\r?\n|\t)[\p{Cc}\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/u;

function unseenCharactersIn(text: string): readonly string[] {
  const line = text.split('\n').findIndex((each) => UNSEEN.test(each.replace(/\r$/, '')));
  return line === -1 ? [] : [`holds invisible characters, first in line ${line + 1}`];
}

function parseTrustJson(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    return isJsonObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function trustJsonEntries(value: Json | undefined): readonly (readonly [string, Json])[] {
  return value !== undefined && isJsonObject(value) ? Object.entries(value) : [];
}

function trustJsonList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
