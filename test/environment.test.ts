// The reference page of environment variables: every one of drover's and of the providers, and no other.

import { globSync, readFileSync } from 'node:fs';
import { knownProviders } from '@drover/core/model/catalog';
import { expect, test } from 'vitest';
import { VARIABLES } from '../scripts/reference/environment-page.ts';

// Drover sets these for its own children, and for hooks; users do not.
const INTERNAL = ['DROVER_CHILD', 'DROVER_PROBE', 'DROVER_PROJECT_DIR'];
// Variables of the standards that telemetry follows. The page names the first of its family.
const STANDARD = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'TRACEPARENT'];

test('the reference lists every variable that drover reads, and no other', () => {
  const sources = globSync(['bin/**/*.{ts,cjs}', 'packages/*/src/**/*.ts']).map((path) => readFileSync(path, 'utf8'));
  const own = sources.flatMap((text) => [...text.matchAll(/\bDROVER_[A-Z_]*[A-Z]\b/g)].map(([name]) => name));
  const providers = knownProviders.flatMap(({ keyEnv, baseUrlEnv }) => [keyEnv, baseUrlEnv]);
  const read = new Set([...own, ...providers, ...STANDARD]);
  for (const name of INTERNAL) read.delete(name);
  expect(VARIABLES.map(([name]) => name).toSorted()).toEqual([...read].toSorted());
});
