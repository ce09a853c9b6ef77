// The reference pages and JSON Schemas in the repository match the readers' schemas.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import * as z from 'zod';
import { isJsonObject } from '@drover/protocol/json';
import { parseRehearsalScript } from '@drover/rehearsal/load';
import { parseBatchSpec } from '../../bin/files/batch-spec.ts';
import { parseConfigFile } from '../../bin/files/config-file.ts';
import { jsonSchemas } from '../../bin/files/json-schemas.ts';
import { parsePlanFile } from '../../bin/files/plan-file.ts';
import { parseRepositoriesFile } from '../../bin/files/repositories-file.ts';
import { projectKeys } from '../../bin/start/settings.ts';
import { pages, referenceFiles, schemaFiles } from '../../scripts/reference/files.ts';

const readers: Readonly<Record<keyof typeof pages, (text: string) => unknown>> = {
  config: (text) => parseConfigFile(text, 'x.yaml').config,
  'plan-file': (text) => parsePlanFile(text, 'x.yaml', { tasksMax: 100, modelOf: (name) => name, agents: [] }),
  'batch-spec': (text) => parseBatchSpec(text, 'x.yaml'),
  repositories: (text) => parseRepositoriesFile(text, 'x.yaml', '/folder'),
  'rehearsal-script': (text) => parseRehearsalScript(text, 'x.yaml'),
};
const names = Object.keys(pages) as (keyof typeof pages)[];

test.each([...(await referenceFiles())])('%s is up to date; pnpm reference writes it anew', (path, text) => {
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test.each(names)('the example of the %s page is read without a mistake', async (name) => {
  await expect(Promise.resolve().then(() => readers[name](pages[name].example))).resolves.toBeDefined();
});

test.each(names)('every key of the %s page has a meaning', (name) => {
  const page = schemaFiles().get(`docs/reference/${name}.md`) ?? '';
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.filter((row) => /\|\s+\|$/.test(row))).toEqual([]);
});

test.each(names)('links of the %s page lead to its headings', (name) => {
  const page = schemaFiles().get(`docs/reference/${name}.md`) ?? '';
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-');
  const headings = [...page.matchAll(/^## (.*)$/gm)].map((match) => slug(match[1] ?? ''));
  expect(new Set(headings).size).toBe(headings.length);
  const links = [...page.matchAll(/\]\(#([^)]*)\)/g)].map((match) => match[1] ?? '');
  expect(links.filter((link) => !headings.includes(link))).toEqual([]);
});

test('the config page names every key that a project may set', () => {
  expect(projectKeys.filter((key) => !pages.config.intro.includes(`\`${key}\``))).toEqual([]);
});

test.each(names)('an editor accepts the example of the %s page by its schema', async (name) => {
  const schema = z.fromJSONSchema(jsonSchemas[name]() as Parameters<typeof z.fromJSONSchema>[0]);
  const { parse } = await import('yaml');
  const example: unknown = parse(pages[name].example);
  expect(schema.safeParse(example).success).toBe(true);
  expect(isJsonObject(example) && schema.safeParse(parse(stringify({ ...example, unheard: 'of' }))).success).toBe(
    false,
  );
});
