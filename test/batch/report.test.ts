// report.md: the result of a batch for a reader of the CI job.

import type { Result } from '@drover/coordinator/batch/results';
import { expect, test } from 'vitest';
import { batchReport } from '../../bin/batch/results/report.ts';
import type { BatchSummary } from '../../bin/batch/results/summary.ts';

const SUMMARY: BatchSummary = {
  v: 1,
  batch: 'tidy',
  spec: 'abc',
  run: 'run_1',
  model: 'anthropic/scripted',
  base: 'b',
  startedAt: '2026-11-16T09:30:00.123Z',
  total: 5,
  outcome: 'incomplete',
  exitCode: 4,
  usage: { input: 1_000, output: 200, cacheRead: 9_000, cacheWrite: 0 },
  cost: 0.05,
  combined: '.drover/out/combined.patch',
};

const result = (task: string, more: Partial<Result>): Result => ({
  task,
  title: `Tidy src/${task}`,
  status: 'landed',
  cached: false,
  repository: 'project',
  group: `src/${task}`,
  files: [`src/${task}`],
  changed: [],
  attempts: 1,
  usage: SUMMARY.usage,
  ms: 1_500,
  cost: 0.01,
  run: 'run_1',
  ...more,
});

test('the report lists done and failed tasks, and each shared cause once', () => {
  const red = { status: 'gate_failed', reason: "the gate 'make' fails on 1a2b already:\nno rule" } as const;
  const results = [
    result('a.ts', { changed: ['src/a.ts'] }),
    result('b.ts', { status: 'no_change', cached: true }),
    result('c.ts', { ...red, patch: 'patches/not-landed/c.ts.patch' }),
    result('d.ts', red),
    result('e.ts', { status: 'failed', reason: 'the model declines' }),
  ];
  expect(`\n${batchReport(SUMMARY, results)}`).toMatchInlineSnapshot(`
    "
    ## ❌ \`tidy\`: 2 of 5 tasks are done

    It ended as **incomplete**, exit code 4.

    | | |
    |---|---:|
    | landed | 1 |
    | nothing to change | 1 |
    | failed | 1 |
    | stopped by a gate on the merged tree | 2 |
    | of these from the cache | 1 |
    | tokens | 10.2k |
    | cost | $0.0500 |
    | model | \`anthropic/scripted\` |

    ### Not done (3)

    <details><summary>2 tasks: stopped by a gate on the merged tree</summary>

    \`\`\`text
    the gate 'make' fails on 1a2b already:
    no rule
    \`\`\`

    - \`c.ts\`: \`Tidy src/c.ts\` (\`src/c.ts\`); its work is kept in \`patches/not-landed/c.ts.patch\`
    - \`d.ts\`: \`Tidy src/d.ts\` (\`src/d.ts\`)

    </details>

    <details><summary>e.ts: failed</summary>

    \`\`\`text
    the model declines
    \`\`\`

    - \`e.ts\`: \`Tidy src/e.ts\` (\`src/e.ts\`)

    </details>

    ### Done (2)

    <details><summary>the list</summary>

    | task | files | time | cost |
    |---|---|---:|---:|
    | \`a.ts\` | 1 changed | 1.5 s | $0.0100 |
    | \`b.ts\` | nothing to change, cached |  | $0.0100 |

    </details>

    ### Next

    \`\`\`text
    git apply .drover/out/combined.patch
    drover resume run_1
    \`\`\`
    "
  `);
});

test('any text stays text: it ends no fence, no cell and no summary', () => {
  const nasty = '``` </details> | <b>x</b>\n````\n::error::x';
  const text = batchReport(SUMMARY, [result('a|`b`.ts', { status: 'failed', title: nasty, reason: nasty })]);
  const [, fence = '', body = ''] = /^(`+)text\n([^]*?)\n\1$/m.exec(text) ?? [];
  expect([fence.length, body]).toEqual([5, nasty.replace('\n::error', '\n: :error')]);
  expect(text).toContain('<summary>a|`b`.ts: failed</summary>');
  expect(text).toContain('- `` a¦`b`.ts ``: ````` ``` </details> ¦ <b>x</b> ```` ::error::x `````');
});
