// Secrets in errors and diagnostics are redacted.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { openDiagnostics } from '../../../bin/diagnostics.ts';
import { main } from '../../../bin/drover.ts';
import type { Io } from '../../../bin/io.ts';
import { temporaryFolder } from '../../support/agent.ts';
import { PLANTED } from '../../support/data/planted-secrets.ts';

const SECRET = 'correct-horse-battery-staple-42';

function ioIn(cwd: string): { readonly io: Io; readonly errors: () => string } {
  const stderr = new PassThrough();
  let text = '';
  stderr.on('data', (data: Buffer) => (text += data.toString()));
  const io = {
    stdin: new PassThrough(),
    stdout: new PassThrough().resume(),
    stderr,
    env: { HOME: cwd, DROVER_HOME: cwd, MY_API_KEY: SECRET },
    cwd,
    node: process.execPath,
    onStop: () => () => undefined,
  } as unknown as Io;
  return { io, errors: () => text };
}

test('an error that quotes a secret is shown without it', async () => {
  const { io, errors } = ioIn(await temporaryFolder());
  const token = PLANTED[0]?.text ?? '';
  expect(await main(['exec', '--model', `nobody-${SECRET}/${token}`, 'go'], io)).toBe(2);
  expect(errors()).toContain('[redacted:');
  expect(errors()).not.toContain(SECRET);
});

test('diagnostics hold no secret, in words or in fields', async () => {
  const cwd = await temporaryFolder();
  const { io } = ioIn(cwd);
  const { diagnose, close } = await openDiagnostics(io, 'log.jsonl');
  for (const { text } of PLANTED) diagnose(`saw ${text}`, { text, nested: [{ text: SECRET }] });
  await close();
  const log = await readFile(join(cwd, 'log.jsonl'), 'utf8');
  expect(log.split('\n').length).toBeGreaterThan(PLANTED.length);
  expect(PLANTED.filter(({ secret }) => log.includes(JSON.stringify(secret).slice(1, -1))).map(({ id }) => id)).toEqual(
    [],
  );
  expect(log).not.toContain(SECRET);
});
