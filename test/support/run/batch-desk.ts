// A fixture for batches: a repository of small files, a scripted model that edits any given file, and drover batch.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Result } from '@drover/coordinator/batch/results';
import type { Answer, AnswerSource, Script } from '@drover/rehearsal/script';
import { main } from '../../../bin/drover.ts';
import type { StopCause } from '../../../bin/io.ts';
import { FakeIo, type Given, type Ran } from '../../cli/fake-io.ts';
import { calls, RunDesk, submits, told, type RanRun } from './run-desk.ts';

const IDENTITY = ['-c', 'user.name=A Person', '-c', 'user.email=person@example.com'];

export type Files = Readonly<Record<string, string>>;

/** Files with one console call each. */
export function noisyFiles(count: number): Files {
  return Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`src/file${at + 1}.ts`, `console.log(${at + 1});\n`]),
  );
}

/**
 * A model that replaces console by log in the file that its task names, then submits; `instead` overrides the answers
 * of a file.
 */
export function tidying(instead: (path: string, step: number) => Answer | undefined = () => undefined): Script {
  const answer: AnswerSource = (request) => {
    const path = /Keep to these files if you can: ([^\s,]+)/.exec(request.task)?.[1] ?? '';
    const step = request.step;
    const other = instead(path, step);
    if (other !== undefined) return other;
    if (step === 1) return calls('read', { path });
    if (step === 2) {
      const lines = (request.results.at(-1)?.output ?? '').split('\n').map((line) => line.replace(/^\s*\d+\t/, ''));
      const text = lines.join('\n').replace(/\n*$/, '\n');
      return calls('write', { path, content: text.replaceAll('console.log', 'log') });
    }
    return submits(`no console in ${path} any more`);
  };
  return { answers: [answer], order: 'conversation' };
}

export const SPEC = `
version: 1
name: no-console
select:
  files: ["src/**/*.ts"]
  contains: "console\\\\."
task:
  title: "Logging in {{ path }}"
  prompt: Replace console calls in {{ files }}.
`;

export class BatchDesk {
  readonly desk: RunDesk;
  readonly out: string;

  private constructor(desk: RunDesk) {
    this.desk = desk;
    this.out = join(desk.repository, '.drover', 'out');
  }

  static async with(script: Script, files: Files, spec = SPEC): Promise<BatchDesk> {
    const desk = new BatchDesk(await RunDesk.with(script, files));
    await desk.spec(spec);
    return desk;
  }

  /** The spec stands beside the repository, so that writing it changes nothing in it. */
  async spec(text: string, name = 'spec.yaml'): Promise<void> {
    await writeFile(join(this.desk.folder, name), text);
  }

  commit(): void {
    this.desk.git('add', '-A');
    this.desk.git(...IDENTITY, 'commit', '-q', '-m', 'more');
  }

  drover(argv: readonly string[] = [], given: Given = {}): Promise<Ran> {
    return this.desk.drover(['batch', '../spec.yaml', ...this.#defaults(argv)], given);
  }

  /** Runs the batch with --json, and returns its events too. */
  async run(argv: readonly string[] = [], given: Given = {}): Promise<RanRun> {
    return told(await this.drover([...argv, '--json'], given));
  }

  /** Stops the batch with a signal as soon as `when` matches its output. */
  async stopped(cause: StopCause, when: (printed: string) => boolean, argv: readonly string[] = []): Promise<RanRun> {
    const { home, repository, server } = this.desk;
    const env = { DROVER_HOME: home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url };
    const fake = new FakeIo({ cwd: repository, env });
    const watch = setInterval(() => when(fake.stdout) && fake.stop(cause), 5);
    const typed = ['batch', '../spec.yaml', ...this.#defaults(argv), '--json'];
    const code = await main(typed, fake.io).finally(() => clearInterval(watch));
    return told({ code, stdout: fake.stdout, stderr: fake.stderr });
  }

  #defaults(argv: readonly string[]): readonly string[] {
    const model = argv.includes('--model') ? [] : ['--model', 'anthropic/scripted'];
    const workers = argv.includes('--workers') ? [] : ['--workers', '0'];
    return [...argv, ...model, ...workers];
  }

  async results(out = this.out): Promise<readonly Result[]> {
    const text = await readFile(join(out, 'results.ndjson'), 'utf8');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Result);
  }

  /** The status of each task. */
  async statuses(out = this.out): Promise<Readonly<Record<string, string>>> {
    return Object.fromEntries((await this.results(out)).map(({ task, status }) => [task, status]));
  }

  text(name: string): Promise<string> {
    return readFile(join(this.out, name), 'utf8');
  }

  async patches(): Promise<readonly string[]> {
    return (await readdir(join(this.out, 'patches'))).filter((name) => name.endsWith('.patch')).toSorted();
  }

  get requests(): number {
    return this.desk.server.requests.length;
  }
}
