// The batch example runs with its scripted model on its sample.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { drover } from '../cli/fake-io.ts';
import { EXAMPLES, MODEL, resultsIn, sample } from '../support/example-sample.ts';
import { readJunit } from '../support/data/junit-schema.ts';
import { runSync } from '../support/process/run-sync.ts';

test('examples/no-console.yaml runs with its scripted model on its sample', async () => {
  const { folder, shop } = await sample(3);
  const env = { DROVER_HOME: join(folder, 'home') };
  const argv = [
    'batch',
    join(EXAMPLES, 'no-console.yaml'),
    '--model',
    `rehearsal/${MODEL}`,
    '--workers',
    '0',
    '--view',
    'silent',
  ];
  const { code, stderr } = await drover(argv, { cwd: shop, env });
  expect([code, stderr]).toEqual([0, '']);
  const out = join(shop, '.drover', 'out');
  expect((await resultsIn(out)).map(({ status }) => status)).toEqual(Array.from({ length: 3 }, () => 'landed'));
  readJunit(await readFile(join(out, 'junit.xml'), 'utf8'));
  runSync('git', ['apply', join(out, 'combined.patch')], { cwd: shop });
  const text = await readFile(join(shop, 'src', 'cart', 'create.js'), 'utf8');
  expect(text).toBe(`// create, of cart.

import { log } from '../log.js';

export function create(items) {
  log.info('create', items.length);
  if (items.length === 0) log.warn('nothing to create');
  return items.map((item) => ({ ...item, create: true }));
}
`);
  runSync(process.execPath, ['--test'], { cwd: shop });
});

test('drover accepts every command line in the example CI files', async () => {
  const lines = await Promise.all(
    ['github-actions.yaml', 'gitlab-ci.yaml'].map(async (name) => {
      const text = await readFile(join(EXAMPLES, 'ci', name), 'utf8');
      const texts = [...JSON.stringify(parse(text)).matchAll(/npx (drover [^"\\]*(?:\\"[^"\\]*\\"[^"\\]*)*)/g)];
      return texts.map(([, line = '']) =>
        line
          .replaceAll('\\"', '')
          .replaceAll(/\$\{\{[^}]*\}\}|\$CI_NODE_INDEX/g, '1')
          .replaceAll('$CI_NODE_TOTAL', '2'),
      );
    }),
  );
  const { shop, folder } = await sample(2);
  const spec = join(EXAMPLES, 'no-console.yaml');
  for (const line of lines.flat()) {
    const argv = line.trim().split(/\s+/).slice(1);
    const given = { cwd: shop, env: { DROVER_HOME: join(folder, 'home'), ANTHROPIC_API_KEY: 'k' } };
    const typed =
      argv[0] === 'batch' ? [...argv.map((word) => (word === 'refactor.yaml' ? spec : word)), '--dry-run'] : argv;
    const { code, stderr } = await drover(typed, given);
    // There are no shards to join yet, but the command line is valid.
    expect([line, code, stderr]).toEqual(
      argv[0] === 'batch' ? [line, 0, ''] : [line, 2, expect.stringMatching(/^drover: --merge: .* cannot be read/)],
    );
  }
  expect(lines.map((each) => each.length)).toEqual([2, 2]);
});
