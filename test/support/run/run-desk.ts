// A fixture for whole runs: a real repository, a scripted model that the test can observe, and drover run.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Shown } from '@drover/core/bus';
import type { Json } from '@drover/protocol/json';
import type { Api } from '@drover/core/model/catalog';
import type { TaskRow } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import type { AgentScript, Answer, AnswerSource, Script } from '@drover/rehearsal/script';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import { onTestFinished } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { drover, FakeIo, type Given, type Ran } from '../../cli/fake-io.ts';
import { runSync } from '../process/run-sync.ts';
import { temporaryFolder } from '../workspace.ts';

export type RanRun = Ran & { readonly events: readonly Shown[]; readonly end: EndOfRun };
export type EndOfRun = Extract<Shown, { readonly type: 'run_end' }>;

const IDENTITY = ['-c', 'user.name=A Person', '-c', 'user.email=person@example.com'];

export class RunDesk {
  readonly repository: string;
  readonly home: string;
  readonly folder: string;
  readonly server: Rehearsal;

  private constructor(folder: string, server: Rehearsal) {
    this.folder = folder;
    this.repository = join(folder, 'project');
    this.home = join(folder, 'home');
    this.server = server;
  }

  static async with(script: Script, files: Readonly<Record<string, string>> = { 'a.txt': 'one\n' }): Promise<RunDesk> {
    const server = await startRehearsal(script);
    onTestFinished(() => server.close());
    return RunDesk.in(await temporaryFolder(), server, files);
  }

  /** A desk in a folder and with a model that the caller removes. */
  static async in(folder: string, server: Rehearsal, files: Readonly<Record<string, string>>): Promise<RunDesk> {
    const desk = new RunDesk(folder, server);
    await mkdir(desk.repository);
    desk.git('init', '-q', '-b', 'main');
    await desk.write(files);
    desk.git('add', '-A');
    desk.git(...IDENTITY, 'commit', '-q', '-m', 'first');
    return desk;
  }

  /** A desk over a folder that already has a project and a home. */
  static over(folder: string, server: Rehearsal): RunDesk {
    return new RunDesk(folder, server);
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(this.repository, path)), { recursive: true });
      await writeFile(join(this.repository, path), content);
    }
  }

  read(path: string): Promise<string> {
    return readFile(join(this.repository, path), 'utf8');
  }

  git(...args: readonly string[]): string {
    return runSync('git', args, { cwd: this.repository }).toString().trimEnd();
  }

  /** The branch whose tip is a commit of this run. */
  resultBranch(run: string): string {
    const heads = this.git('for-each-ref', '--format=%(refname:lstrip=2)', 'refs/heads/drover/').split('\n');
    const isResult = (head: string) =>
      !head.startsWith(`drover/${run}/`) && this.git('log', '-1', '--format=%B', head).includes(`Drover-Run: ${run}`);
    return heads.find((head) => head !== '' && isResult(head)) ?? `no branch of ${run}`;
  }

  /** Every file of the delivered branch. */
  delivered(run: string): Readonly<Record<string, string>> {
    const ref = this.resultBranch(run);
    const paths = this.git('ls-tree', '-r', '--name-only', ref).split('\n');
    return Object.fromEntries(paths.map((path) => [path, this.git('show', `${ref}:${path}`)]));
  }

  /** Runs drover in the repository with these arguments. */
  drover(argv: readonly string[], given: Given = {}, api: Api = 'anthropic'): Promise<Ran> {
    return drover(this.#typed(argv, api), this.#given(given));
  }

  /** Runs drover, and interrupts it as soon as `when` matches its output. */
  async interrupted(
    argv: readonly string[],
    when: (stdout: string, stderr: string) => boolean,
    given: Given = {},
  ): Promise<Ran> {
    const fake = new FakeIo({ ...this.#given(given), cwd: this.repository });
    const watch = setInterval(() => when(fake.stdout, fake.stderr) && fake.stop('SIGINT'), 5);
    const code = await main(this.#typed(argv, 'anthropic'), fake.io).finally(() => clearInterval(watch));
    return { code, stdout: fake.stdout, stderr: fake.stderr };
  }

  #given(given: Given): Given {
    const env = {
      DROVER_HOME: this.home,
      ANTHROPIC_API_KEY: 'k',
      OPENAI_API_KEY: 'k',
      ANTHROPIC_BASE_URL: this.server.url,
      OPENAI_BASE_URL: `${this.server.url}/v1`,
    };
    return { cwd: this.repository, ...given, env: { ...env, ...given.env } };
  }

  #typed(argv: readonly string[], api: Api): readonly string[] {
    const isWork = argv[0] === 'run' || argv[0] === 'plan';
    return isWork && !argv.includes('--model') ? [...argv, '--model', `${api}/scripted`] : argv;
  }

  async run(argv: readonly string[], given: Given = {}, api: Api = 'anthropic'): Promise<RanRun> {
    // Workers run in this thread unless a test asks for threads, because starting threads takes longest.
    const workers = argv.includes('--workers') || argv[0] !== 'run' ? [] : ['--workers', '0'];
    const ran = await this.drover([...argv, ...workers, '--json'], given, api);
    return told(ran);
  }
}

/** The output of `--json`, as events. */
export function told(ran: Ran): RanRun {
  const events = ran.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Shown);
  const end = events.at(-1);
  if (end?.type !== 'run_end') throw new Error(`no run_end, but: ${JSON.stringify(end)}\n${ran.stderr}`);
  return { ...ran, events, end };
}

export function statuses({ tasks }: EndOfRun): Readonly<Record<string, TaskRow['status']>> {
  return Object.fromEntries(tasks.map(({ task, status }) => [task, status]));
}

// ── scripts ───────────────────────────────────────────────────────────────────────────────────

export type ScriptedTask = Partial<Omit<PlannedTask, 'id'>> & {
  /** The worker's answers, in order. */
  readonly answers: readonly AnswerSource[];
  /** The worker's answers in an attempt after a conflict. */
  readonly again?: readonly Answer[];
};

export const calls = (name: string, args: Readonly<Record<string, Json>>): Answer => ({ calls: [{ name, args }] });
export const writes = (path: string, content: string): Answer => calls('write', { path, content });
export const says = (text: string): Answer => ({ text });
export const submits = (summary: string): Answer => calls('submit_result', { summary });

/** A coordinator that submits these tasks at once, and their workers. */
export function planned(tasks: Readonly<Record<string, ScriptedTask>>, more: Partial<Script> = {}): Script {
  const workers = Object.entries(tasks).flatMap(([id, { answers, again }]): [string, AgentScript][] => [
    ...(again === undefined
      ? []
      : ([[`${id} again`, { assigned: `Your task is ${id}:[^]*This is attempt`, answers: again }]] as [
          string,
          AgentScript,
        ][])),
    [id, { assigned: `Your task is ${id}:`, answers }],
  ]);
  const plan = Object.entries(tasks).map(([id, scripted]) => {
    const { answers: _, again: __, ...task } = scripted;
    return { id, title: `do ${id}`, prompt: `Please do ${id}.`, ...task };
  });
  return {
    order: 'conversation',
    answers: [calls('submit_plan', { tasks: plan as unknown as Json }), says('All is done.')],
    agents: Object.fromEntries(workers),
    ...more,
  };
}
