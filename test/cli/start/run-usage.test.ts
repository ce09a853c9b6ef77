// Mistakes before a run begins: one sentence, exit code 2, no request and no change.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RunDesk } from '../../support/run/run-desk.ts';
import { runSync } from '../../support/process/run-sync.ts';

const GIT = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always'];

const CASES: Readonly<
  Record<
    string,
    {
      readonly make?: (desk: RunDesk) => Promise<string | void>;
      readonly args?: readonly string[];
      readonly says: string;
    }
  >
> = {
  'no repository': {
    make: async ({ folder }) => {
      await mkdir(join(folder, 'plain'));
      return join(folder, 'plain');
    },
    says: 'is not in a git repository',
  },
  'no commit yet': {
    make: async ({ folder }) => {
      runSync('git', ['init', '-q', 'young'], { cwd: folder });
      return join(folder, 'young');
    },
    says: 'no commit',
  },
  'a bare repository': {
    make: async ({ folder }) => {
      runSync('git', ['init', '-q', '--bare', 'bare'], { cwd: folder });
      return join(folder, 'bare');
    },
    says: 'bare',
  },
  'a submodule': {
    make: async (desk) => {
      desk.git(...GIT, 'submodule', '--quiet', 'add', desk.repository, 'sub');
      desk.git(...GIT, 'commit', '-q', '-m', 'with a submodule');
    },
    says: 'submodule',
  },
  'a budget that is none': { args: ['--budget', '5 apples'], says: "--budget: '5 apples'" },
  'a deliver that is none': {
    args: ['--deliver', 'pigeon'],
    says: "--deliver: 'pigeon' is none of branch, merge, patch",
  },
  'merging into a dirty checkout': {
    make: (desk) => writeFile(join(desk.repository, 'a.txt'), 'changed\n'),
    args: ['--deliver', 'merge'],
    says: 'committed or stashed: a.txt. Without --deliver merge you get a branch',
  },
  'merging without a branch': {
    make: async (desk) => void desk.git('checkout', '-q', '--detach'),
    args: ['--deliver', 'merge'],
    says: '--deliver merge: HEAD is detached',
  },
  'a gate that is no command': {
    args: ['--gate', 'CI=1 no-such-command --all'],
    says: "--gate: 'CI=1 no-such-command --all' can't be run: there is no command no-such-command; install it, or correct the command",
  },
  'a gate that bash can’t read': {
    args: ['--gate', 'if true'],
    says: "--gate: 'if true' can't be run: bash can't read it: syntax error",
  },
  'a plan that is not there': {
    args: ['--plan', 'nowhere.yaml'],
    says: '--plan: nowhere.yaml cannot be read (ENOENT)',
  },
};

test.each(Object.entries(CASES))('%s', async (_, { make, args = [], says }) => {
  const desk = await RunDesk.with({ answers: [] });
  const cwd = (await make?.(desk)) ?? desk.repository;
  const { code, stdout, stderr } = await desk.drover(['run', 'do it', ...args], { cwd });
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(says)]);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  expect(desk.server.requests).toEqual([]);
});

test.each([
  ['a script that a task may make', './check.sh'],
  ['a keyword', 'if true; then echo ok; fi'],
  ['a builtin', '[ -e a.txt ] && ! false'],
  ['what is found in a variable', '$RUNNER test'],
  ['what is computed', '$(echo true)'],
  ['a command on a PATH of its own', 'PATH=$PWD/tools:$PATH check-all'],
])('a gate that may pass is not refused: %s', async (_, gate) => {
  const desk = await RunDesk.with({ answers: [] });
  expect(await desk.drover(['run', 'do it', '--dry-run', '--gate', gate])).toMatchObject({ code: 0, stderr: '' });
});

test('a run without a goal is refused with how to give one', async () => {
  const desk = await RunDesk.with({ answers: [] });
  const { code, stderr } = await desk.drover(['run']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('no goal given; run drover run ')]);
});

test('--dry-run sends no request and changes nothing', async () => {
  const desk = await RunDesk.with({ answers: [] });
  await writeFile(
    join(desk.folder, 'plan.yaml'),
    'goal: two things\ntasks:\n  - {id: b, prompt: b it, dependsOn: [a]}\n  - {id: a, prompt: a it}\n',
  );
  const { code, stdout } = await desk.drover([
    'run',
    '--plan',
    '../plan.yaml',
    '--dry-run',
    '--gate',
    'test -e a.txt',
    '--budget',
    '9ktok',
    '--workers',
    '3',
  ]);
  expect(code).toBe(0);
  expect(`\n${stdout.replace(/at [0-9a-f]{12}/, 'at <commit>')}`).toMatchInlineSnapshot(`
    "
    Dry run: nothing is changed. This would run:
      goal        two things
      model       anthropic/scripted (its price is not known)
      repository  <cwd> at <commit> on main
      left out    nothing: all is committed
      workers     3
      gates       test -e a.txt
      budget      9000 tokens
      deliver     branch

    2 tasks, in the order in which they would land:
      a: a it
      b: b it (after a)
    "
  `);
  expect([desk.server.requests, desk.git('status', '--porcelain')]).toEqual([[], '']);
});
