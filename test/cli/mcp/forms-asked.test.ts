// A form of an MCP server where users are: at a terminal, in the dashboard, over HTTP, and nowhere.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ADA, askingFlags } from '../../support/mcp/asking.ts';
import { calls, planned, submits } from '../../support/run/run-desk.ts';
import { deskWith, KEY, OperatedRun } from '../dashboard/operated.ts';
import { drover, temporaryFolder } from '../fake-io.ts';
import { desk, servedHere } from '../serve/served.ts';

const SLOW = { timeout: 120_000 };

type Recorded = { readonly type: string; readonly output?: string; readonly reason?: string };

async function asked(typed?: readonly string[]) {
  const cwd = await temporaryFolder();
  const script = `answers: [{calls: [{name: mcp__remote__ask}], times: 1}]\notherwise: {text: Done.}\n`;
  await writeFile(join(cwd, 'script.yaml'), script);
  const flags = await askingFlags(cwd);
  const argv = ['exec', 'Go', '--model', 'rehearsal/script.yaml', '--json', '--sandbox', 'off', ...flags];
  const { stdout, stderr } = await drover(argv, { cwd, ...(typed && { typed }) });
  const events = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Recorded);
  const find = (type: string) => events.findLast((event) => event.type === type);
  return { stderr, output: find('tool_execution_end')?.output, reason: find('permission_decision')?.reason };
}

test('a user fills a form in at a terminal, field by field', SLOW, async () => {
  const { output, stderr } = await asked(['y', 'Ada', '']);
  expect(stderr).toContain('remote.ask asks: Who are you?');
  expect(stderr).toContain('name: text\n  name: ');
  expect(output).toBe(ADA);
});

test('without a terminal a form is declined with a line that says so', SLOW, async () => {
  const { output, reason } = await asked();
  expect(reason).toBe('the MCP server remote asks you "Who are you?", and there is no terminal to answer on');
  expect(output).toBe('{"action":"decline"}');
});

test('a user fills a form in on the dashboard', SLOW, async () => {
  const runs = await deskWith(() => planned({ alpha: { answers: [calls('mcp__remote__ask', {}), submits('done')] } }));
  const run = await OperatedRun.start(runs, {
    argv: ['--workers', '1', ...(await askingFlags(runs.folder))],
    size: { columns: 100, rows: 30 },
  });
  await run.see('alpha asks', 'Who are you?', 'y once');
  await run.press('y');
  await run.see('name: text', 'w write the answer');
  await run.press('w');
  await run.press(`Ada${KEY.enter}`);
  await run.see('age: number, optional, default 7', 'w write the answer');
  await run.press('w');
  await run.press(KEY.enter);
  expect(await run.ended).toBe(0);
  const ended = (await run.records()).find(
    ({ type, name }) => type === 'tool_execution_end' && name === 'mcp__remote__ask',
  );
  expect(ended?.['output']).toBe(ADA);
});

test('a client fills a form in over HTTP', SLOW, async () => {
  const cwd = await desk();
  const { client } = await servedHere(cwd, ['--sandbox', 'off', ...(await askingFlags(cwd))]);
  const { id } = await client.createSession({});
  const words = ['', 'Ada', ''];
  const fields: unknown[] = [];
  let output = '';
  for await (const event of client.execute(id, { content: 'Fill in' })) {
    if (event.type === 'permission_request') {
      fields.push(event.field);
      await client.answer(id, event.requestId, { allowed: true, words: words.shift() ?? '' });
    }
    if (event.type === 'tool_execution_end') ({ output } = event);
  }
  expect(output).toBe(ADA);
  expect(fields).toEqual([
    undefined,
    { name: 'name', kind: 'text', required: true },
    { name: 'age', kind: 'number', default: '7', required: false },
  ]);
});
