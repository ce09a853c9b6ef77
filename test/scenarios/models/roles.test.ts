// Models by role: flags, config, plan files and batches name them; unknown names fail before anything runs.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { planned, RunDesk, statuses, submits, writes } from '../../support/run/run-desk.ts';

const SCRIPT = planned({ one: { answers: [writes('b.txt', 'two\n'), submits('done')] } });
const PLAN = `tasks:
  - { id: one, prompt: 'Please do one.' }
  - id: two
    prompt: Please do two.
    model: openai/special
`;

const models = ({ server }: RunDesk) => server.requests.map(({ body }) => (body as { model: string }).model);
const home = (desk: RunDesk) => ({ env: { XDG_CONFIG_HOME: join(desk.folder, 'config') } });

async function configured(desk: RunDesk, text: string): Promise<string> {
  const folder = join(desk.folder, 'config', 'drover');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'config.yaml'), text);
  return join(folder, 'config.yaml');
}

test('plan and work ask the models of their roles, and the run remembers both', async () => {
  const desk = await RunDesk.with(SCRIPT);
  const roles = ['--plan-model', 'anthropic/big', '--work-model', 'openai/small'];
  const { events, end } = await desk.run(['run', 'go', '--yes', ...roles]);
  expect(statuses(end)).toEqual({ one: 'landed' });
  expect(models(desk)).toEqual(['big', 'small', 'small', 'big']);
  expect(events[0]).toMatchObject({
    type: 'run_start',
    model: 'anthropic/big',
    models: { plan: ['anthropic/big'], work: ['openai/small'] },
  });
  const shown = await desk.drover(['show', end.run ?? '']);
  expect(shown.stdout).toContain('  plan: anthropic/big\n  work: openai/small\n');
  expect(shown.stdout).toContain('The prompt cache could not be shared between different models.');
});

test('one model for both roles shares its cache, and the report lists no models', async () => {
  const desk = await RunDesk.with(SCRIPT);
  const { events, end } = await desk.run(['run', 'go', '--yes', '--model', 'anthropic/big']);
  expect('models' in (events[0] ?? {})).toBe(false);
  expect((await desk.drover(['show', end.run ?? ''])).stdout).not.toContain('cache could not be shared');
  const [first, second] = desk.server.requests.map(({ body }) => body as { system: unknown; tools: unknown });
  expect([second?.system, second?.tools]).toEqual([first?.system, first?.tools]);
});

test('--model wins over the roles of the config, and --work-model over --model', async () => {
  const desk = await RunDesk.with(SCRIPT);
  await configured(desk, 'models: { plan: anthropic/big, work: [openai/small, anthropic/spare] }\n');
  await desk.run(['run', 'go', '--yes', '--model', 'anthropic/one', '--work-model', 'openai/other'], home(desk));
  expect(models(desk)).toEqual(['one', 'other', 'other', 'one']);
});

test('a task of a plan file asks the model that it names', async () => {
  const script = planned({
    one: { answers: [writes('b.txt', 'two\n'), submits('done')] },
    two: { answers: [writes('c.txt', 'three\n'), submits('done')] },
  });
  const desk = await RunDesk.with(script);
  await writeFile(join(desk.folder, 'plan.yaml'), PLAN);
  const { events, end } = await desk.run(['run', 'go', '--yes', '--plan', '../plan.yaml', '--workers', '0']);
  expect(statuses(end)).toEqual({ one: 'landed', two: 'landed' });
  const asked = (events as readonly Recorded[]).flatMap((event) =>
    event.type === 'session_start' ? [[event.task, event.model]] : [],
  );
  expect(asked).toEqual([
    ['one', 'anthropic/scripted'],
    ['two', 'openai/special'],
  ]);
});

test('an unknown model in a plan, batch or config fails at its line before any request', async () => {
  const desk = await RunDesk.with(SCRIPT);
  await writeFile(join(desk.folder, 'plan.yaml'), PLAN.replace('openai/special', 'opnai/special'));
  await writeFile(
    join(desk.folder, 'batch.yaml'),
    'version: 1\nselect: { files: ["*.txt"] }\ntask:\n  prompt: Do it.\n  model: claude-sonet-4-5\n',
  );
  const plan = await desk.drover(['run', 'go', '--plan', '../plan.yaml']);
  const batch = await desk.drover(['batch', '../batch.yaml', '--model', 'anthropic/scripted']);
  const path = await configured(desk, 'workers: 2\nmodels:\n  work: [anthropic/fine, nobody/knows]\n');
  const config = await desk.drover(['batch', '../batch.yaml', '--list'], home(desk));
  await writeFile(
    join(desk.folder, 'batch.yaml'),
    'version: 1\nselect: { files: ["*.txt"] }\ntask: { prompt: Do it. }\n',
  );
  const work = await desk.drover(['batch', '../batch.yaml'], home(desk));
  expect([plan.code, batch.code, config.code, work.code]).toEqual([2, 2, 0, 2]);
  expect(plan.stderr).toContain("../plan.yaml:5:12: there is no provider 'opnai'");
  expect(batch.stderr).toContain(
    "../batch.yaml:5:10: there is no model 'claude-sonet-4-5'; did you mean claude-sonnet-4-5?",
  );
  expect(work.stderr).toContain(`${path}:3:26: there is no provider 'nobody'`);
  expect(desk.server.requests).toEqual([]);
});

test('a project config cannot choose models until it is trusted', async () => {
  const desk = await RunDesk.with(SCRIPT, {
    'a.txt': 'one\n',
    '.drover/config.yaml': 'models: { work: openai/theirs }\n',
  });
  const before = await desk.drover(['models', '--json']);
  expect(before.stderr).toContain('.drover/config.yaml may not set models, so it is ignored');
  expect(JSON.parse(before.stdout)).toMatchObject({ roles: { work: ['anthropic/claude-sonnet-4-5'] } });
  await desk.drover(['trust', '--yes']);
  const after = await desk.drover(['models', '--json']);
  expect(JSON.parse(after.stdout)).toMatchObject({ roles: { work: ['openai/theirs'] } });
});

test('resume keeps roles and task models, and --model changes the roles only', async () => {
  const script = planned({
    one: { answers: [writes('b.txt', 'two\n'), submits('done')] },
    two: { answers: [writes('c.txt', 'three\n'), submits('done')] },
  });
  const desk = await RunDesk.with({ ...script, keys: ['k'] });
  await writeFile(join(desk.folder, 'plan.yaml'), PLAN);
  const refused = { env: { ANTHROPIC_API_KEY: 'wrong', OPENAI_API_KEY: 'wrong' } };
  const roles = ['--work-model', 'anthropic/small'];
  const first = await desk.run(['run', 'go', '--yes', '--plan', '../plan.yaml', ...roles], refused);
  expect(statuses(first.end)).toEqual({ one: 'failed', two: 'failed' });
  const before = models(desk).length;
  const second = await desk.run(['resume', '--yes', '--workers', '0', '--model', 'anthropic/other']);
  expect(statuses(second.end)).toEqual({ one: 'landed', two: 'landed' });
  expect(models(desk).slice(before)).toEqual(['other', 'other', 'special', 'special']);
  expect(models(desk).slice(0, before)).toContain('small');
});
