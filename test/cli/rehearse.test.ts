// drover rehearse: a scripted model for other programs, until the user stops it.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { main } from '../../bin/drover.ts';
import { drover, FakeIo, temporaryFolder } from './fake-io.ts';
import { until } from '../support/until.ts';

test('rehearse prints its address, answers requests and ends on a signal', async () => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'script.yaml'), 'answers: [{text: hello}]');
  const fake = new FakeIo({ cwd });
  const running = main(['rehearse', 'script.yaml'], fake.io);
  await until(() => fake.stdout.includes('OPENAI'));

  const address = /ANTHROPIC_BASE_URL=(\S+)/.exec(fake.stdout)?.[1] ?? '';
  const response = await fetch(`${address}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', 'x-api-key': 'any' },
    body: JSON.stringify({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }),
  });
  expect(await response.json()).toMatchObject({ content: [{ type: 'text', text: 'hello' }] });

  fake.stop('SIGINT');
  expect(await running).toBe(130);
  expect(fake.stdout).toBe(
    `rehearsing script.yaml; end with Ctrl-C\n  ANTHROPIC_BASE_URL=${address}\n  OPENAI_BASE_URL=${address}/v1\n`,
  );
  await expect(fetch(address)).rejects.toThrow('fetch failed');
});

test('a port that is taken or invalid is reported with the fix', async () => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'script.yaml'), 'answers: [{text: hello}]');
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;

  expect(await drover(['rehearse', 'script.yaml', '--port', String(port)], { cwd })).toEqual({
    code: 2,
    stdout: '',
    stderr: `drover: port ${port} is in use; choose another\n`,
  });
  expect(await drover(['rehearse', 'script.yaml', '--port', '70000'], { cwd })).toEqual({
    code: 2,
    stdout: '',
    stderr: "drover: --port: '70000' is not a whole number from 0 to 65535\n",
  });
});

test('a missing script is named', async () => {
  const ran = await drover(['rehearse', 'none.yaml']);
  expect([ran.code, ran.stdout]).toEqual([2, '']);
  expect(ran.stderr).toMatch(/^drover: <cwd>\/none\.yaml:1:1: cannot be read \(ENOENT\); name a script that exists/);
});
