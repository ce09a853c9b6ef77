// A fixture for tests of the page: the real drover serve in a real repository, on a scripted model. It can be restarted
// at the same address.

import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DroverClient } from '@drover/client/client';
import type { Script } from '@drover/rehearsal/script';
import { startRehearsal } from '@drover/rehearsal/server';
import { onTestFinished } from 'vitest';
import { main } from '../../../bin/drover.ts';
import type { StopListener } from '../../../bin/io.ts';
import { FakeIo } from '../../cli/fake-io.ts';
import { RunDesk } from '../run/run-desk.ts';

const MODEL = 'anthropic/claude-sonnet-4-5'; // a model with a price

export type PageSettings = {
  readonly files?: Readonly<Record<string, string>>;
  /** The arguments of `drover serve`. */
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** Starts a server for one test. */
export async function pageDesk(script: Script, settings: PageSettings = {}): Promise<PageDesk> {
  const desk = await PageDesk.open(script, settings);
  onTestFinished(() => desk.close());
  await desk.start();
  return desk;
}

export class PageDesk {
  readonly run: RunDesk;
  readonly #argv: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  #served: { readonly ended: Promise<number>; readonly stop: () => void } | undefined;
  #port = 0;
  #token = '';

  private constructor(run: RunDesk, { argv = [], env = {} }: PageSettings) {
    this.run = run;
    this.#argv = argv;
    this.#env = env;
  }

  /** A repository and a model, without a server. */
  static async open(script: Script, settings: PageSettings = {}): Promise<PageDesk> {
    const { files = { 'a.txt': 'one\n' } } = settings;
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'drover-page-')));
    return new PageDesk(await RunDesk.in(folder, await startRehearsal(script), files), settings);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get token(): string {
    return this.#token;
  }

  get client(): DroverClient {
    return new DroverClient({ baseUrl: this.url, token: this.#token });
  }

  async start(): Promise<void> {
    const { repository, home, server } = this.run;
    const env = { DROVER_HOME: home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url, ...this.#env };
    const fake = new FakeIo({ cwd: repository, env });
    const listeners = new Set<StopListener>();
    const onStop = (listener: StopListener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    };
    const said = new Promise<void>((resolve) => fake.io.stdout.once('data', () => resolve()));
    const argv = ['serve', '--port', String(this.#port), '--json', '--model', MODEL, ...this.#argv];
    const ended = main(argv, { ...fake.io, onStop });
    await Promise.race([said, ended.then(() => Promise.reject(new Error(fake.stderr)))]);
    this.#port = (JSON.parse(fake.stdout) as { readonly port: number }).port;
    this.#token = (await readFile(join(home, 'server-token'), 'utf8')).trim();
    this.#served = { ended, stop: () => listeners.forEach((listener) => listener.stop('SIGTERM')) };
  }

  async stop(): Promise<void> {
    const served = this.#served;
    this.#served = undefined;
    served?.stop();
    await served?.ended;
  }

  async close(): Promise<void> {
    await this.stop();
    await this.run.server.close();
    await rm(this.run.folder, { recursive: true, force: true });
  }
}
