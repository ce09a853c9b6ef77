// The host of a server in tests: like `drover serve`, without settings and keys. Sessions, journals and tools are real;
// only the model is scripted.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Session } from '@drover/core/session/session';
import type { SessionOptions } from '@drover/core/session/session-options';
import { UsageError } from '@drover/core/errors';
import { openSessionJournal, sessionFolder } from '@drover/core/journal/session-journal';
import { wireApis } from '@drover/core/model/catalog';
import { Questions } from '@drover/core/permission/questions';
import { builtinTools } from '@drover/core/tools/builtin';
import { remoteTool } from '@drover/core/tools/remote';
import type { Tool } from '@drover/core/tools/tool';
import type { Host, HostedRun, HostedSession, RunWanted } from '@drover/server/host';

export const TOKEN = 'a-token-that-only-tests-know-0123456789';

const RETRY = { attemptsMax: 4, backoffMs: 5, backoffMsMax: 20, waitMsMax: 2_000, wallMsMax: 10_000 };
const TIMEOUTS = { headersMs: 20_000, firstByteMs: 20_000, silenceMs: 20_000, progressMs: 20_000 };

export type HostSettings = {
  readonly home: string;
  readonly root: string;
  readonly modelUrl: string; // the scripted server's address
  readonly tools: readonly Tool[];
  /** Names of tools that need approval. */
  readonly asks: readonly string[];
  readonly brokenSession?: string; // opening this model fails as with a bug
  readonly startRun?: (wanted: RunWanted) => Promise<HostedRun>;
  readonly diagnose: Host['diagnose'];
};

export function hostOf(settings: HostSettings): Host {
  const { home, root, diagnose } = settings;
  return {
    home,
    root,
    version: '0.0.0-test',
    models: async () => ({ model: 'test/scripted', models: [] }),
    openSession: (wanted) => openSession(settings, wanted),
    startRun:
      settings.startRun ??
      (async () => {
        throw new UsageError('no runs in this test');
      }),
    resumeRun: async () => {
      throw new UsageError('no runs in this test');
    },
    deliverRun: async () => {
      throw new UsageError('no runs in this test');
    },
    diffOf: async () => undefined,
    patchOf: async ({ repository, commit }) => {
      const { stdout } = await promisify(execFile)('git', ['-C', repository, 'show', commit]);
      return stdout;
    },
    diagnose,
  };
}

async function openSession(
  settings: HostSettings,
  { id, begin, model }: Parameters<Host['openSession']>[0],
): Promise<HostedSession> {
  const { home, modelUrl, diagnose } = settings;
  if (id === settings.brokenSession) throw new TypeError('nobody thought of this');
  const name = model ?? begin?.model ?? 'test/scripted';
  if (!name.startsWith('test/')) throw new UsageError(`there is no model ${name}`);
  const hooks = {
    onTrouble: () => undefined,
    onRecovery: () => undefined,
    diagnose: (text: string) => diagnose(text, {}),
  };
  const journal = await openSessionJournal(home, id, hooks);
  const questions = new Questions(() => undefined);
  try {
    const session = new Session({
      ...(await modelAt(modelUrl)),
      ...toolsOf(settings, begin?.tools ?? journal.past?.remoteTools ?? []),
      id,
      context: {
        cwd: begin?.cwd ?? journal.past?.cwd ?? '',
        env: { PATH: process.env['PATH'] ?? '' },
        outputFolder: join(sessionFolder(home, id), 'outputs'),
      },
      remoteTimeoutMs: begin?.remoteTimeoutMs ?? journal.past?.remoteTimeoutMs ?? 600_000,
      judge: async ({ name: tool }) => ({ effect: settings.asks.includes(tool) ? 'ask' : 'allow', why: 'a test' }),
      question: (question, signal) => questions.askOrLeave(question, signal),
      store: journal.store,
      model: name.slice('test/'.length),
      ...(begin && { opening: begin.messages }),
      ...(begin?.options && { sampling: begin.options }),
      ...(journal.past && { past: journal.past }),
    });
    return { session, questions, close: () => journal.close() };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

async function modelAt(
  baseUrl: string,
): Promise<
  Pick<
    SessionOptions,
    'worker' | 'provider' | 'model' | 'contextTokens' | 'outputTokensMax' | 'limits' | 'retry' | 'pass'
  >
> {
  return {
    worker: 0,
    provider: await wireApis.anthropic({ id: 'test', apiKey: 'k', baseUrl, timeouts: TIMEOUTS }),
    model: 'scripted',
    contextTokens: 200_000,
    outputTokensMax: 8_192,
    limits: { textCallRetriesMax: 2, stepsMax: 50 },
    retry: RETRY,
    pass: (event) => [event],
  };
}

function toolsOf(
  { tools }: HostSettings,
  remote: readonly Parameters<typeof remoteTool>[0][],
): Pick<SessionOptions, 'tools'> {
  return { tools: [...builtinTools, ...tools, ...remote.map(remoteTool)] };
}
