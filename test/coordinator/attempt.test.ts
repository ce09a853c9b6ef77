// One attempt at a task: its events carry its id, and none arrives after its end.

import { type AttemptOptions, attemptTask, type AttemptContext } from '@drover/coordinator/attempt/attempt';
import { makeWorkerSeed } from '@drover/coordinator/plan/seed';
import type { Event } from '@drover/protocol/events';
import { DroverError } from '@drover/core/errors';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { NO_SERVERS } from '@drover/core/tools/served/tool-servers';
import type { RunTask } from '@drover/core/task/task';
import { expect, test } from 'vitest';

const never = new AbortController().signal;
const said = (message: string): Event => ({ type: 'warning', message });
const task = { id: 'one', title: 'One', prompt: 'Do it.', dependsOn: [], files: [], mode: 'read' } as const;

/** A run's context in which only the attempt is real. */
function benchFor(runTask: RunTask): { readonly bench: AttemptContext; readonly told: string[] } {
  const told: string[] = [];
  const workspace = {
    path: '/nowhere',
    base: 'b',
    commit: async () => undefined,
    release: async (since?: 'commit') => void told.push(since === undefined ? 'released' : 'released as committed'),
  };
  const bench = {
    run: 'run_1',
    startedAt: '2026-11-16T09:30:00.000Z',
    tell: (event: Event, { worker, task: of, attempt }: { worker?: number; task?: string; attempt?: number }) =>
      told.push(`${worker} ${of} ${attempt} ${event.type === 'warning' ? event.message : event.type}`),
    settled: async () => undefined,
    workspaces: { take: async () => workspace, again: async () => ({ ...workspace, path: '/as/it/was' }) },
    runTask,
    admission: { admissionFor: () => ({ abandon: () => undefined }) },
    question: async () => ({ allowed: false, by: 'nobody', always: false }),
    models: { roles: { plan: ['a/b'], work: ['a/b'] }, open: new Map([['a/b', { spec: {}, provider: {} }]]) },
    common: {},
    servers: NO_SERVERS,
    outputFolder: () => '/nowhere',
    caches: () => false,
    extensions: { skills: [], agents: [], hooks: [] },
    redact: (text: string) => text,
  };
  return { bench: bench as unknown as AttemptContext, told };
}

const ATTEMPT: AttemptOptions = {
  task,
  attempt: 2,
  worker: 3,
  base: 'b',
  system: '',
  seed: makeWorkerSeed('none', undefined, { goal: 'g', tasks: [task] }),
  mayFail: false,
  goesOn: false,
  mail: { onMessage: () => undefined, delivered: () => undefined },
  turn: async () => undefined,
  onAnswer: () => undefined,
};

test('events after the end of an attempt are dropped', async () => {
  let speak: (text: string) => void = () => undefined;
  const { bench, told } = benchFor(async (_, link) => {
    speak = (text) => link.emit(said(text), {});
    speak('at work');
    return { status: 'finished', summary: '', usage: NO_USAGE, refused: [] };
  });
  await attemptTask(bench, ATTEMPT, never);
  speak('too late');
  expect(told).toEqual(['3 one 2 task_start', '3 one 2 at work', '3 one 2 task_end', 'released as committed']);
});

test.each([
  ['it failed', 'failed', {}],
  ['it has gates, which run in there after the commit', 'finished', { gates: ['true'] }],
] as const)('a workspace may differ from its commit where %s', async (_, status, more) => {
  const { bench, told } = benchFor(async () => ({ status, summary: '', usage: NO_USAGE, refused: [] }));
  await attemptTask(bench, { ...ATTEMPT, task: { ...task, ...more } }, never);
  expect(told).toEqual(['3 one 2 task_start', '3 one 2 task_end', 'released']);
});

test.each([
  ['goes on in the workspace it had, also where nothing is known of it but that it was begun', true, '/as/it/was'],
  ['begins in a workspace of its own', false, '/nowhere'],
])('an attempt %s', async (_, goesOn, path) => {
  const places: string[] = [];
  const { bench } = benchFor(async ({ workspace, begin }) => {
    places.push(workspace);
    expect(begin).toEqual({ content: expect.stringContaining('Do it.') });
    return { status: 'finished', summary: '', usage: NO_USAGE, refused: [] };
  });
  await attemptTask(bench, { ...ATTEMPT, goesOn }, never);
  expect(places).toEqual([path]);
});

test('an attempt stopped while it waits has started nothing and returns its workspace', async () => {
  const stop = new AbortController();
  const { bench, told } = benchFor(() => Promise.reject(new Error('nobody is to work')));
  const turn = async () => stop.abort(new DroverError({ kind: 'aborted', by: 'user' }));
  expect(await attemptTask(bench, { ...ATTEMPT, turn }, stop.signal)).toMatchObject({ status: 'cancelled' });
  expect(told).toEqual(['released', '3 one 2 task_end']);
});
