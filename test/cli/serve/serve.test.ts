// drover serve as a process: prints its address, serves sessions and runs, and stops.

import { once } from 'node:events';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import type { Recorded } from '@drover/protocol/events';
import { expect, onTestFinished, test } from 'vitest';
import { drover, FakeIo, temporaryFolder } from '../fake-io.ts';
import { processesWith, type Program } from '../program.ts';
import { raw, request } from '../../support/serve/raw-http.ts';
import { desk, LONG, PATIENT, SERVE, served, servedHere } from './served.ts';
import { main } from '../../../bin/drover.ts';
import { openServerToken } from '../../../bin/serve/token-file.ts';

/** The first event that matches. */
async function first(events: AsyncIterable<Recorded>, isIt: (event: Recorded) => boolean): Promise<Recorded> {
  for await (const event of events) if (isIt(event)) return event;
  throw new Error('the events ended');
}

test('serve prints its address and stores a token that only its owner can read', async () => {
  const cwd = await desk();
  const { program, where, token, client } = await served(cwd);
  expect(where).toEqual({
    url: `http://127.0.0.1:${where.port}`,
    address: '127.0.0.1',
    port: expect.any(Number) as number,
    tokenFile: join(cwd, '.drover', 'server-token'),
  });
  expect([(await stat(where.tokenFile)).mode & 0o777, token]).toEqual([
    0o600,
    expect.stringMatching(/^[\w-]{43}$/) as string,
  ]);
  expect(await client.health()).toMatchObject({ status: 'ok' });
  const page = await fetch(`${where.url}/`);
  expect([page.status, page.headers.get('content-type')]).toEqual([
    200,
    expect.stringContaining('text/html') as string,
  ]);
  program.child.kill('SIGTERM');
  const { code, stdout, stderr } = await program.ended();
  expect([code, stdout.split('\n').length, stderr]).toEqual([143, 2, '']);

  expect(`${stdout}${stderr}`).not.toContain(token);
  expect((await servedHere(cwd)).token).toBe(token);
});

test('a session over loopback is started, asked, answered, served remotely and removed', async () => {
  const { client } = await servedHere(await desk(), ['--sandbox', 'off']);
  const session = await client.session({
    tools: { far_away: { description: 'Far.', schema: { type: 'object', properties: {} }, run: () => 'it is far' } },
  });
  const asking = await session.execute('Ask me');
  const heard: string[] = [];
  for await (const event of asking) {
    heard.push(event.type);
    if (event.type !== 'permission_request') continue;
    expect((await session.snapshot()).questions).toMatchObject([
      { requestId: event.requestId, subject: event.subject },
    ]);
    await client.answer(session.id, event.requestId, { allowed: false });
  }
  expect(heard).toContain('permission_decision');
  expect(await asking.result()).toMatchObject({ outcome: 'done', text: 'Nothing more.' });

  expect(await (await session.execute('Far away')).result()).toMatchObject({ outcome: 'done', text: 'So far.' });
  expect((await client.sessions()).sessions).toMatchObject([{ id: session.id, title: 'Ask me', state: 'done' }]);
  await client.deleteSession(session.id);
  expect((await client.sessions()).sessions).toEqual([]);
});

test('a run over loopback is started, streamed, shown, listed, and its diff returned', async () => {
  const cwd = await desk();
  const { client } = await servedHere(cwd);
  const { id } = await client.startRun({ goal: 'one file', workers: 1 });
  const events = await Array.fromAsync(client.runEvents(id));
  expect(events.at(-1)).toMatchObject({ type: 'run_end', outcome: 'done', exitCode: 0 });
  const snapshot = await client.run(id);
  expect(snapshot).toMatchObject({
    seq: events.at(-1)?.seq,
    goal: 'one file',
    state: 'done',
    live: false,
    rows: [{ task: 'one', status: 'landed', files: ['one.txt'] }],
  });
  expect((await client.runs()).runs).toMatchObject([{ id, tasks: 1, landed: 1 }]);
  expect((await client.diff(id, 'one')).patch).toContain('+one');
  // The run removes its leftovers after its last event.
  const cancelled = () => client.cancelRun(id).catch((error: unknown) => error);
  await expect.poll(cancelled, PATIENT).toMatchObject({ status: 409, type: 'run.over' });
  await expect(client.run('run_00000000000000000000000000000000')).rejects.toMatchObject({ status: 404 });
  await expect(client.startRun({ goal: 'x', cwd: '..' })).rejects.toMatchObject({ status: 422 });
  await expect(client.startRun({ goal: 'x', budget: 'much' })).rejects.toMatchObject({ status: 422 });
});

test('a cancelled run ends, leaves no process and is resumable', async () => {
  const cwd = await desk();
  const { client } = await servedHere(cwd, ['--yes']);
  const { id } = await client.startRun({ goal: 'for ever', workers: 1 });
  await first(client.runEvents(id), ({ type }) => type === 'tool_execution_start');
  await first(client.runEvents(id), (event) => event.type === 'tool_execution_start' && event.name === 'shell');
  await client.cancelRun(id);
  const end = (await Array.fromAsync(client.runEvents(id))).at(-1);
  expect(end).toMatchObject({ type: 'run_end', outcome: 'cancelled', exitCode: 130 });
  expect(processesWith(`sleep ${LONG[0]}`)).toEqual([]);
});

/** A session and a run whose commands would take an hour. */
async function busy(cwd: string) {
  const server = await served(cwd, ['--yes']);
  const { client } = server;
  const session = await client.session({});
  await session.execute('Take long');
  const { id: run } = await client.startRun({ goal: 'for ever', workers: 1 });
  const isCommand = (event: Recorded) => event.type === 'tool_execution_start' && event.name === 'shell';
  await Promise.all([first(client.events(session.id), isCommand), first(client.runEvents(run), isCommand)]);
  return { ...server, session: session.id, run };
}

/** The process may have been about to exit at the second signal: a shell reports both ends as 130. */
async function endedBy(program: Program): Promise<unknown> {
  const { code } = await program.ended();
  return code === 130 ? 'SIGINT' : (program.child.signalCode ?? code);
}

/** Sends the second signal once the first was handled: two at once may be merged into one. */
async function insisted({ child }: Program, url: string): Promise<void> {
  const isServed = (): Promise<boolean> =>
    fetch(url).then(
      () => true,
      () => false,
    );
  while (await isServed());
  child.kill('SIGINT');
}

test.each([
  ['once', 1, 'incomplete'],
  ['twice', 2, undefined],
])(
  'Ctrl-C %s ends all work, leaves nothing behind, and all is resumable',
  async (_, times, ending) => {
    const cwd = await desk();
    const { program, where, session, run } = await busy(cwd);
    program.child.kill('SIGINT');
    if (times === 2) await insisted(program, where.url);
    expect(await endedBy(program)).toBe('SIGINT');
    expect([...processesWith(`sleep ${LONG[0]}`), ...processesWith(`sleep ${LONG[1]}`)]).toEqual([]);

    const { client } = await servedHere(cwd);
    const kept = (await client.sessions()).sessions.find(({ id }) => id === session);
    if (ending !== undefined) expect([kept?.state, (await client.run(run)).state]).toEqual([ending, 'cancelled']);
    const resumed = await drover(['resume', run, '--json', '--deny', 'shell'], { cwd });
    expect(JSON.parse(resumed.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({ type: 'run_end', run });
    const again = await client.session({ id: session });
    if (ending === undefined) await (await again.resume())?.result();
    expect(await (await again.execute('Go on.')).result()).toMatchObject({ outcome: 'done', text: 'Nothing more.' });
  },
  120_000,
);

test('a second Ctrl-C at once leaves no command of a session behind', async () => {
  const { program, where, client } = await served(await desk(), ['--yes']);
  const session = await client.session({});
  await session.execute('Stay');
  await first(client.events(session.id), ({ type }) => type === 'tool_execution_start');
  await expect.poll(() => processesWith(`sleep ${LONG[2]}`).length, PATIENT).toBeGreaterThan(0);
  program.child.kill('SIGINT');
  await insisted(program, where.url);
  expect(await endedBy(program)).toBe('SIGINT');
  // The processes were signalled; on a busy machine their end takes a moment.
  await expect.poll(() => processesWith(`sleep ${LONG[2]}`), PATIENT).toEqual([]);
});

test('the address opens the page once, and only on a terminal', async () => {
  const cwd = await desk();
  const shown = async (columns?: number): Promise<string> => {
    const fake = new FakeIo({ cwd, ...(columns !== undefined && { columns }), env: { NO_COLOR: '1' } });
    const ending = main(
      SERVE.filter((word) => word !== '--json'),
      fake.io,
    );
    await expect.poll(() => fake.stdout, PATIENT).toContain('Ctrl-C');
    fake.stop('SIGINT');
    expect(await ending).toBe(130);
    return fake.stdout
      .replaceAll(cwd, '<cwd>')
      .replace(/:\d+\//, ':<port>/')
      .replace(/=[0-9a-f]{32}/, '=<ticket>');
  };
  expect(await shown()).toMatchInlineSnapshot(`
    "drover serves <cwd>/project
      page   http://127.0.0.1:<port>/
      token  <cwd>/.drover/server-token  for programs, and for the page later
    Ctrl-C ends it; what is at work then can be gone on with.
    "
  `);
  expect(await shown(80)).toMatchInlineSnapshot(`
    "drover serves <cwd>/project
      page   http://127.0.0.1:<port>/#ticket=<ticket>  lets you in once, within five minutes
      token  <cwd>/.drover/server-token  for programs, and for the page later
    Ctrl-C ends it; what is at work then can be gone on with.
    "
  `);
});

test('serve listens on another address only on request, and says so', async () => {
  const cwd = await desk();
  const fake = new FakeIo({ cwd });
  const ending = main([...SERVE, '--address', '0.0.0.0'], fake.io);
  await expect.poll(() => fake.stdout, PATIENT).toContain('url');
  fake.stop('SIGTERM');
  expect([await ending, fake.stderr]).toEqual([
    143,
    'drover: whoever reaches 0.0.0.0 and has the token can run commands here, and nothing on the way is encrypted; put it behind something that is\n',
  ]);
  expect(JSON.parse(fake.stdout)).toMatchObject({
    address: '0.0.0.0',
    url: expect.stringContaining('127.0.0.1') as string,
  });
});

test('serve accepts a further host name only with --name', async () => {
  const asked = async (...args: readonly string[]) => {
    const { where, token } = await servedHere(await desk(), args);
    const headers = ['Host: box.example', `Authorization: Bearer ${token}`];
    return (await raw(where.port, request('GET /v1/runs HTTP/1.1', headers))).status;
  };
  expect([await asked(), await asked('--name', 'Box.example')]).toEqual([403, 200]);
});

test('a port that is taken is reported with the fix', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  expect(await drover(['serve', '--port', String(port)])).toEqual({
    code: 2,
    stdout: '',
    stderr: `drover: port ${port} is taken, perhaps by another drover serve; choose one with --port N, or any with --port 0\n`,
  });
});

test.each([
  [['--port', '65536'], "--port: '65536' is not a whole number from 0 to 65535"],
  [['--address', '192.0.2.1'], '192.0.2.1 is no address of this machine to listen at (EADDRNOTAVAIL)'],
  [['--cwd', 'nowhere'], '--cwd: there is no folder <cwd>/nowhere'],
  [['--name', 'http://here'], "--name: 'http://here' is not a host name; leave out the scheme and the port"],
  [['--model', 'nobody/any'], "there is no provider 'nobody'"],
  [['--model', 'rehearsal/nowhere.yaml'], 'nowhere.yaml'],
])('%o is refused before anything is served', async (args, words) => {
  const { code, stdout, stderr } = await drover(['serve', ...args]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(words);
});

test('servers that start at the same moment share one token', async () => {
  const cwd = await temporaryFolder();
  const kept = await Promise.all(Array.from({ length: 20 }, () => openServerToken(join(cwd, 'state'))));
  expect(new Set(kept.map(({ token }) => token)).size).toBe(1);
  expect(await readdir(join(cwd, 'state'))).toEqual(['server-token']);
});

test('an invalid token file is not used; one readable by others is closed to them', async () => {
  const cwd = await desk();
  await mkdir(join(cwd, '.drover'));
  const file = join(cwd, '.drover', 'server-token');
  await writeFile(file, 'short\n');
  expect(await drover(SERVE, { cwd })).toEqual({
    code: 2,
    stdout: '',
    stderr: 'drover: <cwd>/.drover/server-token holds no token; remove it, and a new one is made\n',
  });
  await writeFile(file, `${'a'.repeat(43)}\n`, { mode: 0o644 });
  const { token } = await servedHere(cwd);
  expect([token, (await stat(file)).mode & 0o777]).toEqual(['a'.repeat(43), 0o600]);
});
