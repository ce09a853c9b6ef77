// drover show of a session that another process is running.

import { expect, test } from 'vitest';
import { Desk, steady } from '../desk.ts';

const SCRIPT = `answers:
  - {thinking: Hm., text: This answer is long.}
`;

test('show of a live session prints the answer so far, not that it was stopped', async () => {
  const desk = await Desk.with(SCRIPT);
  await desk.exec('busy', 'what is here?');
  const records = await desk.records('busy');
  const at = records.findIndex(({ type }) => type === 'text_start');
  const { type: _, ...start } = records[at] ?? {};
  const noted = { ...start, type: 'partial', kind: 'text', from: 0, text: 'This answer is' };
  await desk.rewrite('busy', [...records.slice(0, at + 1), noted]);
  const leave = await desk.occupy('busy');
  const live = await desk.run(['show', 'busy']);
  await leave();
  const dead = await desk.run(['show', 'busy']);

  expect({ code: live.code, stderr: live.stderr }).toEqual({ code: 0, stderr: '' });
  expect(steady(live.stdout).split('\n\n').slice(1).join('\n\n')).toMatchInlineSnapshot(`
    "❯ what is here?

      · thought for <time>

    This answer

    watch it with: drover logs busy --follow
    "
  `);
  expect(live.stdout).toContain('● live');
  expect(live.stdout).not.toContain('was stopped');
  expect(dead.stdout).toContain('was stopped');
});
