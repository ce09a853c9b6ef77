// The lines view of a run: one line per change, and groups in GitHub Actions.

import { PassThrough } from 'node:stream';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import type { Output } from '../../../bin/io.ts';
import { runLinesView } from '../../../bin/views/run-lines.ts';
import { label, sampleRun, sampleSettings, Teller } from '../../support/run/sample-run.ts';

const ACTIONS = { GITHUB_ACTIONS: 'true' };

async function shown(events: readonly Recorded[], env: Record<string, string> = {}, columns?: number): Promise<string> {
  const stream = new PassThrough();
  let text = '';
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const output: Output = Object.assign(stream, columns === undefined ? {} : { isTTY: true, columns });
  const view = runLinesView(output, env);
  for (const event of events) await view.show(event);
  await view.close();
  return text;
}

/** The lines without times, which depend on the reader's zone, and without the report. */
function told(text: string): readonly string[] {
  const [lines = ''] = text.split(`\n\n${sampleSettings.goal}`);
  return lines.split('\n').map((line) => line.replace(/^\d\d:\d\d:\d\d /, ''));
}

test('a run prints one line per change, with time, task and activity', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const text = await shown(events);
  expect(text).toMatch(/^\d\d:\d\d:\d\d {2}drover/);
  expect(told(text)).toMatchInlineSnapshot(`
    [
      " drover       begins: Replace moment with date-fns everywhere",
      " coordinator  ▸ grep: moment",
      " coordinator  ▸ submit_plan: all",
      " drover       plan 1: 3 tasks",
      " task-1       · Replace moment in the API client",
      " task-2       · Billing",
      " task-3       · Format dates in the weekly report and in everything that is mailed",
      " task-1       ○ starting",
      " task-2       ○ starting",
      " task-3       ○ starting",
      " task-3       ◔ throttled: the provider asks to slow down",
      " task-1       ▸ shell: pnpm test task-1",
      " task-2       ? asking: shell: pnpm test task-2",
      " task-2       ✓ allowed: shell: pnpm test task-2",
      " task-3       ▸ shell: pnpm test task-3",
      " task-2       ▸ shell: pnpm test task-2",
      " task-1       → merging",
      " task-3       → merging",
      " task-2       → merging",
      " drover       ◆ pnpm test with task-1, task-2, task-3",
      " drover       ✓ pnpm test passes with task-1, task-2, task-3  0.9 s",
      " task-1       ✓ landed  2 files · 10.9k tokens · $0.0125 · 4.6 s",
      " task-2       ✓ landed  2 files · 10.9k tokens · $0.0125 · 4.6 s",
      " task-3       ✓ landed  2 files · 10.9k tokens · $0.0125 · 4.5 s",
    ]
  `);
});

test('calls that run together have one line each, whichever ends first', async () => {
  const { events } = sampleRun({ tasks: 1 });
  const at = events.findIndex(({ type, task }) => type === 'task_start' && task === 'task-1');
  const teller = new Teller();
  const place = { task: 'task-1', worker: 1, attempt: 1 };
  const start = (file: string) =>
    teller.tell({ type: 'tool_execution_start', args: {}, ...label(1, `write: ${file}`) }, place);
  const end = (file: string) => {
    const result = { output: '', outputSummary: '', isError: false };
    teller.tell({ type: 'tool_execution_end', ...result, ...label(1, `write: ${file}`) }, place);
  };
  start('a');
  start('b');
  end('b');
  end('a');
  start('a');
  const lines = told(await shown([...events.slice(0, at + 1), ...teller.events]));
  expect(lines.filter((line) => line.includes('write'))).toEqual([
    ' task-1       ▸ write: a',
    ' task-1       ▸ write: b and 1 more',
    ' task-1       ▸ write: a',
  ]);
});

test('failures, retries, conflicts and skips print their reason', async () => {
  const { events } = sampleRun({ tasks: 10 });
  const lines = told(await shown(events)).filter((line) =>
    /\| |retrying|attempt|failed|fails|conflict|skipped/.test(line),
  );
  expect(lines).toMatchInlineSnapshot(`
    [
      " task-4       ↻ retrying: the worker was lost: out of memory",
      " task-5       ↻ retrying: the worker was lost: out of memory",
      " task-4       ○ starting, attempt 2",
      " task-5       ○ starting, attempt 2",
      " task-4       ✗ failed: the worker was lost: out of memory",
      " task-6       ↻ retrying: it conflicts in package.json",
      " task-6       ○ starting, attempt 2",
      " task-9       ↻ retrying: it conflicts in package.json",
      " task-9       ○ starting, attempt 2",
      " task-9       ≠ conflict: it conflicts in package.json",
      " drover       ✗ pnpm test fails with task-7  0.9 s",
      " drover       | 1 test fails:",
      " drover       |   expected 2 to be 3",
      " drover       |   at src/report.test.ts:12",
      " task-7       ✗ gate failed: pnpm test fails with it",
      " task-10      - skipped: task task-4 failed",
    ]
  `);
});

test('in GitHub Actions the calls of a finished attempt form a group', async () => {
  const { events } = sampleRun({ tasks: 6 });
  const lines = told(await shown(events, ACTIONS)).filter((line) => /task-4|::/.test(line));
  expect(lines).toMatchInlineSnapshot(`
    [
      " task-4       · Calendar",
      "::group::task-1: Replace moment in the API client",
      "::endgroup::",
      "::group::task-3: Format dates in the weekly report and in everything that is mailed",
      "::endgroup::",
      "::group::task-2: Billing",
      "::endgroup::",
      " task-4       ○ starting",
      " task-4       ↻ retrying: the worker was lost: out of memory",
      "::group::task-4: Calendar",
      " task-4       ▸ shell: pnpm test task-4",
      "::endgroup::",
      "::group::task-5: Time zones of the scheduler",
      "::endgroup::",
      "::group::task-6: Replace moment in the API client",
      "::endgroup::",
      " task-4       ○ starting, attempt 2",
      " task-4       ✗ failed: the worker was lost: out of memory",
      "::group::task-4: Calendar, attempt 2",
      " task-4       ▸ shell: pnpm test task-4",
      "::endgroup::",
      "::group::task-5: Time zones of the scheduler, attempt 2",
      "::endgroup::",
      "::group::task-6: Replace moment in the API client, attempt 2",
      "::endgroup::",
    ]
  `);
});

/** The lines that GitHub's runner takes for commands, by its own rules. */
function commandsIn(text: string): readonly string[] {
  return text.split('\n').filter((line) => {
    // The runner ignores invisible characters before and inside a command.
    const seen = line.replace(/[\p{Format}\p{Mn}\p{Variation_Selector}]/gu, '');
    return /^\s*::[^:]*::/.test(seen) || /##\[[^\]]*\]/.test(seen);
  });
}

test.each([
  '::error::owned',
  '\n::stop-commands::x\n',
  '\n  \t::add-mask::a\n',
  '\n\u200B::set-output name=x::y\n',
  '\n:\u200D:debug::y\n',
  '\n\u00A0::warning file=a.js::b',
  '##[group]x',
  'text ##[error]x',
  '#\u00AD#[add-path]x',
  '%0A::error::owned',
])('in GitHub Actions %j from a model or a tool is text, not a command', async (spice) => {
  const text = await shown(sampleRun({ tasks: 10, spice }).events, ACTIONS);
  const commands = commandsIn(text);
  expect(commands.filter((line) => !/^::(group::task-\d+: |endgroup::$)/.test(line))).toEqual([]);
  // A group's title is data, so a newline in it stays escaped.
  expect(commands.filter((line) => /%0A/.test(line))).toEqual([]);
});

test('outside of GitHub Actions such text is unchanged', async () => {
  const text = await shown(sampleRun({ tasks: 3, spice: ' ##[x]' }).events);
  expect(text).toContain('Billing ##[x]');
  expect(text).not.toContain('::group::');
});

test('any text becomes one line without control sequences', async () => {
  const spice = '\u001B[2J\u001B]0;title\u0007\nnext\r\u0085line\u202E';
  const lines = told(await shown(sampleRun({ tasks: 3, spice }).events));
  expect(lines.filter((line) => !/^ (drover|coordinator|task-\d) /.test(line))).toEqual([]);
  // eslint-disable-next-line no-control-regex
  expect(lines.join('')).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u202A-\u202E]/);
});

test('an unanswerable question, a warning and a resume are printed', async () => {
  const teller = new Teller();
  const place = { worker: 0 };
  const call = label(0, 'shell: make');
  teller.tell({ type: 'run_start', resumed: true, ...sampleSettings });
  teller.tell(
    { type: 'permission_request', requestId: 'q', subject: 'make', why: 'no rule allows it', ...call },
    place,
  );
  const reason = 'nobody is there to ask';
  teller.tell(
    { type: 'permission_decision', requestId: 'q', allowed: false, by: 'nobody', always: false, reason, ...call },
    place,
  );
  teller.tell({ type: 'warning', message: 'the disk is nearly full' });
  expect(told(await shown(teller.events)).join('\n')).toMatchInlineSnapshot(`
    " drover       goes on with: Replace moment with date-fns everywhere
     coordinator  ? asking: shell: make
     drover       ✗ not allowed: nobody is there to ask
     drover       ! the disk is nearly full
    "
  `);
});

test('a denied call is printed with its rule', async () => {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  const output = 'Not allowed: denied by the rule shell(curl*)';
  const end = { type: 'tool_execution_end', output, outputSummary: output, isError: true } as const;
  teller.tell({ ...end, ...label(0, 'shell: curl x') }, { worker: 0 });
  expect(told(await shown(teller.events)).join('\n')).toContain(
    '✗ not allowed: shell: curl x: denied by the rule shell(curl*)',
  );
});

test('lines have colours on a terminal, and none elsewhere', async () => {
  const { events } = sampleRun({ tasks: 3 });
  expect(await shown(events, {}, 80)).toContain('\u001B[');
  expect(await shown(events, { NO_COLOR: '1' }, 80)).not.toContain('\u001B[');
  expect(await shown(events)).not.toContain('\u001B[');
});
