// Files that drover reads itself, replaced by pipes, endless files or links out: each is refused at once with a reason.

import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { HANG_MS, LARGE_FILE, LINK_OUT, makePipe, ODD_FILES } from '../../support/data/odd-files.ts';
import { runSync } from '../../support/process/run-sync.ts';
import { drover, type Ran, temporaryFolder } from '../fake-io.ts';

const SPEC = `version: 1
name: tidy
select:
  files: list.txt
task:
  prompt: Tidy {{ files }}.
`;

const MODEL = ['--model', 'anthropic/scripted'];

type Named = {
  readonly what: string;
  readonly path: string; // relative to the folder that holds the repository
  readonly argv: readonly string[];
  /** The sentence up to the problem. */
  readonly start: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly bound: '1 MB' | '10 MB' | '16 MB';
};

const NAMED: readonly Named[] = [
  {
    what: 'the user’s config',
    path: '.config/drover/config.yaml',
    argv: ['exec', 'go', ...MODEL],
    start: '<folder>/.config/drover/config.yaml',
    bound: '1 MB',
  },
  {
    what: 'a prompt file',
    path: 'prompt.md',
    argv: ['exec', '--prompt-file', '../prompt.md', ...MODEL],
    start: 'the prompt file <folder>/prompt.md',
    bound: '10 MB',
  },
  {
    what: 'a goal file',
    path: 'goal.md',
    argv: ['run', '--goal-file', '../goal.md', ...MODEL],
    start: 'the prompt file <folder>/goal.md',
    bound: '10 MB',
  },
  {
    what: 'a plan',
    path: 'plan.yaml',
    argv: ['run', '--plan', '../plan.yaml', ...MODEL],
    start: '--plan: ../plan.yaml',
    bound: '16 MB',
  },
  {
    what: 'a batch spec',
    path: 'spec.yaml',
    argv: ['batch', '../spec.yaml', ...MODEL],
    start: '../spec.yaml',
    bound: '1 MB',
  },
  {
    what: 'a list of files',
    path: 'list.txt',
    argv: ['batch', '../spec.yaml', ...MODEL],
    start: '../spec.yaml:4:10: the list list.txt',
    files: { 'spec.yaml': SPEC },
    bound: '16 MB',
  },
  {
    what: 'a repositories file',
    path: 'repositories.yaml',
    argv: ['batch', '../spec.yaml', ...MODEL],
    start: '../spec.yaml:4:10: repositories.yaml',
    files: { 'spec.yaml': SPEC.replace('files: list.txt', 'repos: repositories.yaml\n  files: ["**"]') },
    bound: '1 MB',
  },
  {
    what: 'a rehearsal script',
    path: 'script.yaml',
    argv: ['rehearse', '../script.yaml'],
    start: '<folder>/script.yaml:1:1:',
    bound: '16 MB',
  },
  {
    what: 'a rehearsal script that is a module',
    path: 'script.mjs',
    argv: ['exec', 'go', '--model', 'rehearsal/../script.mjs'],
    start: '<folder>/script.mjs:1:1:',
    bound: '16 MB',
  },
];

/** A folder that contains a repository; drover's own state is outside. */
async function projectIn(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await temporaryFolder();
  const project = join(folder, 'project');
  await mkdir(project);
  for (const [path, text] of Object.entries({ 'project/a.txt': 'a', ...files })) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const git = (...args: readonly string[]) => runSync('git', args, { cwd: project });
  git('init', '-q', '-b', 'main');
  git('add', 'a.txt');
  git('-c', 'user.name=A Person', '-c', 'user.email=person@example.com', 'commit', '-q', '-m', 'first');
  return folder;
}

async function droverIn(folder: string, argv: readonly string[]): Promise<Ran> {
  const env = {
    HOME: folder,
    DROVER_HOME: join(folder, 'home'),
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_BASE_URL: 'http://127.0.0.1:9',
  };
  const { code, stdout, stderr } = await drover(argv, { cwd: join(folder, 'project'), env });
  const steady = (text: string) => text.replaceAll('<cwd>', '<folder>/project').replaceAll(folder, '<folder>');
  return { code, stdout: steady(stdout), stderr: steady(stderr) };
}

const sentence = (start: string, problem: string) => ({
  code: 2,
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^drover: ${RegExp.escape(`${start} ${problem}`)}; \\w.*\n$`)),
});

const ODD_NAMED = NAMED.flatMap((named) => ODD_FILES.map((odd) => ({ ...named, ...odd })));

test.each(ODD_NAMED)('$name as $what is refused', { timeout: HANG_MS }, async (given) => {
  const folder = await projectIn(given.files);
  await mkdir(dirname(join(folder, given.path)), { recursive: true });
  await given.make(join(folder, given.path));
  expect(await droverIn(folder, given.argv)).toEqual(sentence(given.start, given.problem));
});

test.each(NAMED)('$what of more than $bound is refused', { timeout: HANG_MS }, async (given) => {
  const bytes = Number.parseInt(given.bound, 10) * 1024 * 1024 + 1;
  const folder = await projectIn({ ...given.files, [given.path]: '#'.repeat(bytes) });
  expect(await droverIn(folder, given.argv)).toEqual(sentence(given.start, `is larger than ${given.bound}`));
});

test('a file named by the user may be a link to anywhere', async () => {
  const folder = await projectIn({ 'project/plan.yaml': '' });
  await rm(join(folder, 'project/plan.yaml'));
  await symlink('/etc/passwd', join(folder, 'project/plan.yaml'));
  const { code, stderr } = await droverIn(folder, ['run', '--plan', 'plan.yaml', ...MODEL]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^drover: plan\.yaml:\d+:\d+: /)]);
});

const ODD_CONFIGS = [['exec', 'go', ...MODEL], ['trust']].flatMap((argv) =>
  [...ODD_FILES, LARGE_FILE, LINK_OUT].map((odd) => ({ argv, command: argv[0], ...odd })),
);

test.each(ODD_CONFIGS)(
  'drover $command refuses a project config that is $name',
  { timeout: HANG_MS },
  async (given) => {
    const folder = await projectIn();
    await mkdir(join(folder, 'project/.drover'));
    await given.make(join(folder, 'project/.drover/config.yaml'));
    const ran = await droverIn(folder, given.argv);
    expect(ran).toEqual(sentence('<folder>/project/.drover/config.yaml', given.problem));
  },
);

test('doctor reports a project config that leads out of the repository', { timeout: HANG_MS }, async () => {
  const folder = await projectIn();
  await mkdir(join(folder, 'project/.drover'));
  await LINK_OUT.make(join(folder, 'project/.drover/config.yaml'));
  const { code, stdout } = await droverIn(folder, ['doctor', '--json']);
  const { checks } = JSON.parse(stdout) as { checks: readonly { check: string; says: string }[] };
  expect([code, checks.find(({ check }) => check === 'project config')?.says]).toEqual([
    2,
    `<folder>/project/.drover/config.yaml ${LINK_OUT.problem}; replace the link with a copy of the file`,
  ]);
});

test('a project config may be a link inside the repository', async () => {
  const folder = await projectIn({ 'project/.drover/real.yaml': 'turns: none\n' });
  await symlink('real.yaml', join(folder, 'project/.drover/config.yaml'));
  const { code, stderr } = await droverIn(folder, ['exec', 'go', ...MODEL]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('config.yaml:1:8: ')]);
});

test.each([...ODD_FILES, LARGE_FILE, LINK_OUT])(
  'drover run refuses a .drover/include that is $name',
  { timeout: HANG_MS },
  async ({ make, problem }) => {
    const folder = await projectIn({ 'script.yaml': '- text: done\n' });
    await mkdir(join(folder, 'project/.drover'));
    await make(join(folder, 'project/.drover/include'));
    const ran = await droverIn(folder, ['run', 'go', '--model', 'rehearsal/../script.yaml']);
    expect(ran).toEqual(sentence('.drover/include', problem));
  },
);

test.each(['package.json', 'Makefile', 'go.mod'])(
  'init ignores a %s that is a pipe',
  { timeout: HANG_MS },
  async (name) => {
    const folder = await projectIn();
    await makePipe(join(folder, 'project', name));
    expect(await droverIn(folder, ['init'])).toMatchObject({ code: 0, stderr: '' });
  },
);

test('merging shards refuses results that are a pipe', { timeout: HANG_MS }, async () => {
  const folder = await projectIn({ 'shard/summary.json': '{}' });
  await makePipe(join(folder, 'shard/results.ndjson'));
  const ran = await droverIn(folder, ['show', '--merge', '../shard', '--out', '../all']);
  expect(ran).toEqual(sentence('--merge: <folder>/shard/results.ndjson', 'is a pipe, not a regular file'));
});
