// Skills: folders with a SKILL.md, in the form that other agents read.
//
// Guarantees
//   1. Names are unique; the project's win over the user's, and nearer ones over farther ones, with a warning.
//   2. The skills are sorted by name, so the catalogue is the same in every process.
//   3. A skill with a mistake is left out, with a warning that names the file and line; the others are kept.

import { basename } from 'node:path';
import type { Skill } from '@drover/core/skills/skill';
import { readFrontMatter, frontMatterText } from './front-matter.ts';
import type { SourceFile } from './source.ts';

const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;
const DESCRIPTION_CHARS_MAX = 1_024;
const SKILLS_MAX = 200;
const MAIN = 'SKILL.md';

export type ReadSkills = { readonly skills: readonly Skill[]; readonly warnings: readonly string[] };

/** `sources` in the order of precedence. */
export function readSkillFiles(sources: readonly SourceFile[]): ReadSkills {
  const found = new Map<string, { readonly skill: Skill; readonly source: string }>();
  const warnings: string[] = [];
  for (const source of sources) {
    const read = readSkillFileOfFolder(source);
    if ('mistake' in read) {
      warnings.push(`${read.mistake}, so the skill is left out`);
      continue;
    }
    warnings.push(...read.warnings);
    const before = found.get(read.skill.name);
    if (before !== undefined)
      warnings.push(`${source.name} is left out: ${before.source} has the same name '${read.skill.name}'`);
    else if (found.size < SKILLS_MAX) found.set(read.skill.name, { skill: read.skill, source: source.name });
  }
  const skills = [...found.values()].toSorted((a, b) => (a.skill.name < b.skill.name ? -1 : 1));
  return { skills: skills.map(({ skill }) => skill), warnings };
}

type ReadSkill = { readonly skill: Skill; readonly warnings: readonly string[] } | { readonly mistake: string };

function readSkillFileOfFolder({ name: at, path, text, files = [], isOwn }: SourceFile): ReadSkill {
  const file = `${at}/${MAIN}`;
  const read = readFrontMatter(text, file);
  if ('mistake' in read) return read;
  const warnings: string[] = [];
  const folder = basename(path);
  const written = frontMatterText(read, 'name');
  const name = written !== undefined && NAME.test(written) ? written : folder.toLowerCase();
  if (written !== name && written !== undefined)
    warnings.push(
      `${file}:${read.fields.get('name')?.line ?? 1}: the name '${written}' is not in a-z, 0-9 and -; it is called '${name}'`,
    );
  if (!NAME.test(name))
    return { mistake: `${file}:1: a skill needs a name in a-z, 0-9 and -, of at most 64 characters` };
  const description = frontMatterText(read, 'description');
  if (description === undefined) return { mistake: `${file}:1: a skill needs a description` };
  const skill = {
    name,
    description: description.slice(0, DESCRIPTION_CHARS_MAX),
    body: read.body,
    folder: path,
    shown: isOwn ? path : at,
    files: files.flatMap(({ name: each, sha256 }) => (each === MAIN ? [] : [{ name: each, sha256 }])),
  };
  return { skill, warnings };
}
