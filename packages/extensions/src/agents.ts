// Custom agents: Markdown files with front matter, and the TOML files of Codex.
//
// Guarantees
//   1. Names are unique; the project's win over the user's, and nearer ones over farther ones, with a warning.
//   2. `tools` only narrows: names that drover does not know give nothing, and an agent never gets a tool that other
//      workers lack.
//   3. An agent with a mistake is left out, with a warning that names the file and line; the others are kept.

import { basename } from 'node:path';
import type { Agent } from '@drover/protocol/plan';
import { isJsonObject, type Json } from '@drover/protocol/json';
import { TOOL_NAMES, usualToolNameOfRule } from '@drover/core/permission/tool-names';
import { type FrontMatter, frontMatterNames, readFrontMatter, frontMatterText } from './front-matter.ts';
import type { SourceFile } from './source.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/;
const DESCRIPTION_CHARS_MAX = 1_024;
const PROMPT_CHARS_MAX = 64_000;
const AGENTS_MAX = 300;

export type ReadAgents = { readonly agents: readonly Agent[]; readonly warnings: readonly string[] };

/** `sources` in the order of precedence. */
export async function readAgentFiles(sources: readonly SourceFile[]): Promise<ReadAgents> {
  const found = new Map<string, { readonly agent: Agent; readonly source: string }>();
  const warnings: string[] = [];
  for (const source of sources) {
    const read = source.path.endsWith('.toml') ? await agentFromToml(source) : agentFromMarkdown(source);
    if ('mistake' in read) {
      warnings.push(`${read.mistake}, so the agent is left out`);
      continue;
    }
    const { agent } = read;
    warnings.push(...read.warnings);
    const before = found.get(agent.name);
    if (before !== undefined)
      warnings.push(`${source.name} is left out: ${before.source} has the same name '${agent.name}'`);
    else if (found.size < AGENTS_MAX) found.set(agent.name, { agent, source: source.name });
  }
  const agents = [...found.values()].map(({ agent }) => agent);
  return { agents: agents.toSorted((a, b) => (a.name < b.name ? -1 : 1)), warnings };
}

type ReadAgent = { readonly agent: Agent; readonly warnings: readonly string[] } | { readonly mistake: string };

type Written = {
  readonly name: string | undefined;
  readonly description: string | undefined;
  readonly model: string | undefined;
  readonly tools: readonly string[] | undefined;
  readonly disallowed: readonly string[];
  readonly prompt: string;
  /** `file:line` of a field. */
  readonly place: (field: string) => string;
};

function agentFromMarkdown(source: SourceFile): ReadAgent {
  const read = readFrontMatter(source.text, source.name);
  if ('mistake' in read) return read;
  return agentFromFile(source, {
    name: frontMatterText(read, 'name'),
    description: frontMatterText(read, 'description'),
    model: frontMatterText(read, 'model'),
    tools: frontMatterNames(read, 'tools'),
    disallowed: frontMatterNames(read, 'disallowedTools') ?? [],
    prompt: read.body,
    place: (field) => `${source.name}:${lineOfAgentField(read, field)}`,
  });
}

function lineOfAgentField({ fields }: FrontMatter, field: string): number {
  return fields.get(field)?.line ?? 1;
}

async function agentFromToml(source: SourceFile): Promise<ReadAgent> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    const value = parse(source.text) as unknown as Json;
    const fields = isJsonObject(value) ? value : {};
    const text = (key: string) => (typeof fields[key] === 'string' ? fields[key] : undefined);
    return agentFromFile(source, {
      name: text('name'),
      description: text('description')?.replaceAll(/\s+/g, ' ').trim(),
      model: text('model'),
      tools: undefined,
      disallowed: [],
      prompt: text('developer_instructions')?.trim() ?? '',
      place: () => `${source.name}:1`,
    });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    return { mistake: `${source.name}:${error.line}: this is no TOML (${error.message.split('\n', 1)[0]})` };
  }
}

function agentFromFile({ path }: SourceFile, written: Written): ReadAgent {
  const { place, description, prompt } = written;
  const name = written.name ?? basename(path).replace(/\.(?:md|toml)$/, '');
  if (!NAME.test(name)) return { mistake: `${place('name')}: the name '${name}' of the agent is not a plain name` };
  if (description === undefined) return { mistake: `${place('description')}: an agent needs a description` };
  if (prompt === '') return { mistake: `${place('name')}: an agent needs a prompt` };
  const warnings: string[] = [];
  const tools = toolsOfAgentFile(written, warnings);
  const model = modelOfAgentFile(written, warnings);
  const agent = {
    name,
    description: description.slice(0, DESCRIPTION_CHARS_MAX),
    prompt: prompt.slice(0, PROMPT_CHARS_MAX),
    ...(tools !== undefined && { tools }),
    ...(model !== undefined && { model }),
  };
  return { agent, warnings };
}

/** The tools that the agent may use; undefined for all. */
function toolsOfAgentFile({ tools, disallowed, place }: Written, warnings: string[]): readonly string[] | undefined {
  const all = tools === undefined || tools.includes('*');
  const known = (names: readonly string[], field: string) =>
    names.flatMap((name) => {
      const found = droverToolsOfAgentFile(name);
      if (found.length === 0) warnings.push(`${place(field)}: drover has no tool '${name}', so it is left out`);
      return found;
    });
  if (all && disallowed.length === 0) return undefined;
  const allowed = all ? TOOL_NAMES : known(tools, 'tools');
  const without = new Set(
    known(
      disallowed.map((name) => name.replace(/\(.*/, '')),
      'disallowedTools',
    ),
  );
  return [...new Set(allowed)].filter((name) => !without.has(name));
}

/** Drover's tools for the name that another agent uses. A name with a pattern, as in Bash(git:*), gives none. */
function droverToolsOfAgentFile(name: string): readonly string[] {
  if (name.startsWith('mcp__')) return [name];
  const lower = name.toLowerCase();
  const usual = TOOL_NAMES.includes(lower) ? lower : usualToolNameOfRule(lower);
  if (usual === undefined) return [];
  // Other agents look at folders with glob, and at history with the shell.
  if (usual === 'glob') return ['glob', 'list'];
  return usual === 'shell' ? ['shell', 'git'] : [usual];
}

function modelOfAgentFile({ model, place }: Written, warnings: string[]): string | undefined {
  if (model === undefined || model === 'inherit') return undefined;
  if (model.includes('/')) return model;
  warnings.push(`${place('model')}: '${model}' is no provider/name, so the model of the workers is used`);
  return undefined;
}
