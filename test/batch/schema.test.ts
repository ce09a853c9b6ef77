// The JSON Schema for editors and the reader accept the same specs.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import * as z from 'zod';
import { UsageError } from '@drover/core/errors';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { readBatchSpec } from '../../bin/files/batch-spec.ts';
import { jsonSchemas } from '../../bin/files/json-schemas.ts';
import { drover } from '../cli/fake-io.ts';

const WHOLE: JsonObject = {
  version: 1,
  name: 'whole',
  select: {
    files: ['src/**'],
    exclude: ['**/*.test.ts'],
    contains: 'x',
    diff: 'main...HEAD',
    command: 'true',
    repos: 'r',
  },
  group: { by: 'package', max: 8 },
  task: {
    id: '{{ name }}',
    title: '{{ path }}',
    prompt: 'Do {{ files }} for {{ vars.who }}.',
    gate: ['lint {{ files }}'],
  },
  gates: ['pnpm test'],
  limits: { budget: '20usd', perTask: '100ktok', timeout: '45m', perTaskTimeout: '1h30m', stopWhenFailed: '30%' },
  vars: { who: 'me' },
  workers: 8,
  deliver: 'patch',
};
const SHORT: JsonObject = {
  version: 1,
  select: { files: 'list.txt' },
  group: 'directory',
  task: { prompt: 'x', gate: 'true' },
  limits: { stopWhenFailed: 3 },
};

let folder: string;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'drover-schema-'))));
afterAll(() => rm(folder, { recursive: true, force: true }));

const batchSchema = jsonSchemas['batch-spec']();
const byEditor = z.fromJSONSchema(batchSchema as Parameters<typeof z.fromJSONSchema>[0]);

async function verdicts(spec: JsonObject): Promise<readonly [editor: boolean, reader: boolean]> {
  await writeFile(join(folder, 'spec.yaml'), stringify(spec));
  const read = await readBatchSpec('spec.yaml', folder).then(
    () => true,
    (error: unknown) => {
      if (error instanceof UsageError) return false;
      throw error;
    },
  );
  return [byEditor.safeParse(spec).success, read];
}

/** The spec with one value replaced, for every place in it. */
function* changed(value: JsonObject, path: readonly string[] = []): Generator<readonly [string, JsonObject]> {
  yield [[...path, 'unheard'].join('.'), { ...value, unheard: 'of' }];
  for (const [key, item] of Object.entries(value)) {
    const place = [...path, key].join('.');
    const others: readonly Json[] = typeof item === 'number' ? [0.5, 'text', 1e9] : [true, 7.5, []];
    for (const other of others)
      if (JSON.stringify(other) !== JSON.stringify(item))
        yield [`${place}: ${JSON.stringify(other)}`, { ...value, [key]: other }];
    if (isJsonObject(item) && key !== 'vars')
      for (const [inner, one] of changed(item, [...path, key])) yield [inner, { ...value, [key]: one }];
  }
}

test('the reader and the JSON Schema accept the same specs', async () => {
  expect([await verdicts(WHOLE), await verdicts(SHORT)]).toEqual([
    [true, true],
    [true, true],
  ]);
  const different: string[] = [];
  let refused = 0;
  for (const [what, spec] of [...changed(WHOLE), ...changed(SHORT)]) {
    const [editor, reader] = await verdicts(spec);
    if (editor !== reader) different.push(`${what}: the schema says ${editor}, the reader ${reader}`);
    if (!reader) refused += 1;
  }
  expect([different, refused > 80]).toEqual([[], true]);
});

test('the printed schema equals the one beside the examples', async () => {
  const { code, stdout } = await drover(['batch', '--schema']);
  expect([code, JSON.parse(stdout)]).toEqual([0, batchSchema]);
  expect(JSON.parse(await readFile('examples/batch.schema.json', 'utf8'))).toEqual(batchSchema);
});
