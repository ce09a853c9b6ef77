// Logins at MCP servers: drover mcp login with a real authorization server on loopback, refresh, logout, secrecy.

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openLoginStore } from '../../bin/mcp/login/login-store.ts';
import { FakeIo, type Ran, drover, temporaryFolder } from '../cli/fake-io.ts';
import { main } from '../../bin/drover.ts';
import { address, call, desk } from '../support/mcp/brokers.ts';
import { authServer, type AuthServer } from '../support/mcp/http/auth-server.ts';
import { sdkServer, type SdkServer } from '../support/mcp/http/sdk-server.ts';
import { calls, planned, RunDesk, statuses, submits } from '../support/run/run-desk.ts';

const SLOW = { timeout: 60_000 };

const sent = (request: Request | undefined, name: string) => request?.headers.get(name) ?? 'nothing';

type World = {
  readonly auth: AuthServer;
  readonly server: SdkServer;
  readonly home: string;
  readonly file: string;
  readonly run: (argv: readonly string[]) => Promise<Ran>;
  /** Runs drover mcp login, and agrees in the browser. */
  readonly logIn: (change?: (address: string) => string) => Promise<Ran>;
  readonly login: () => { readonly access: string; readonly refresh: string };
};

async function world(entry: object = {}, options: { readonly registers?: boolean } = {}): Promise<World> {
  const home = await temporaryFolder();
  const auth = await authServer(() => server.url, options);
  const echoed = async (_: unknown, { http }: { http?: { req?: Request } }) => ({
    content: [
      { type: 'text', text: `I was sent ${sent(http?.req, 'authorization')} and ${sent(http?.req, 'x-team-key')}` },
    ],
  });
  const server: SdkServer = await sdkServer({ before: auth.guard, tools: { leak: echoed as never } });
  const file = join(home, 'servers.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { docs: { url: server.url, ...entry } } }));
  const given = { cwd: home, env: { DROVER_HOME: join(home, 'state') } };
  const logIn: World['logIn'] = async (change = (address) => address) => {
    const fake = new FakeIo(given);
    const done = main(['mcp', 'login', 'docs', '--mcp', file], fake.io);
    let isOver = false;
    void done.then(() => (isOver = true));
    const shown = () => /^ {2}(http\S+)$/m.exec(fake.stdout)?.[1];
    await expect.poll(() => isOver || shown() !== undefined, { timeout: 20_000 }).toBe(true);
    const found = shown();
    if (found !== undefined) await auth.agree(change(found));
    return { code: await done, stdout: fake.stdout, stderr: fake.stderr };
  };
  const login = () => {
    const { access_token: access = '', refresh_token: refresh = '' } =
      openLoginStore(join(home, 'state'), { server: 'docs', url: server.url }).read()?.tokens ?? {};
    return { access, refresh };
  };
  return { auth, server, home, file, run: (argv) => drover(argv, given), logIn, login };
}

test('a server that wants a login says which command logs in', SLOW, async () => {
  const { run, file } = await world();
  const { code, stdout } = await run(['mcp', 'test', 'docs', '--mcp', file]);
  expect([code, stdout]).toEqual([2, expect.stringContaining('it wants a login; run: drover mcp login docs')]);
});

test('a login registers a client, proves itself with PKCE, and is used', SLOW, async () => {
  const { auth, logIn, run, file, home, login } = await world();
  const { code, stdout, stderr } = await logIn();
  expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining('Logged in at docs.')]);
  const [client] = [...auth.clients.values()];
  expect(client?.redirect_uris).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)]);
  expect(auth.issued.map(({ by }) => by)).toEqual(['code']);
  expect(login().access).toBe(auth.issued[0]?.access);
  const folder = join(home, 'state', 'mcp', 'logins');
  const [stored = ''] = readdirSync(folder).filter((name) => name.endsWith('.json'));
  expect([statSync(join(folder, stored)).mode & 0o777, statSync(folder).mode & 0o777]).toEqual([0o600, 0o700]);
  const tried = await run(['mcp', 'test', 'docs', '--mcp', file]);
  expect([tried.code, tried.stdout]).toEqual([0, expect.stringContaining('docs: 6 tools')]);
  expect(tried.stdout + tried.stderr + stdout).not.toContain(login().access);
});

test('a browser that comes back from another login gets no token', SLOW, async () => {
  const { auth, logIn, login } = await world();
  const { code, stderr } = await logIn((address) => address.replace(/state=[^&]*/, 'state=planted'));
  expect([code, stderr]).toEqual([2, expect.stringContaining('the browser came back from another login')]);
  expect([auth.issued, login().access]).toEqual([[], '']);
});

test('a server that registers no clients needs the clientId of its entry', SLOW, async () => {
  const without = await world({}, { registers: false });
  const refused = await without.logIn();
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('no login at the MCP server docs')]);
  const { auth, logIn } = await world({ oauth: { clientId: 'mine' } }, { registers: false });
  expect((await logIn()).code).toBe(0);
  expect([auth.clients.size, auth.issued.length]).toEqual([0, 1]);
});

test('headers of the entry never reach the server that gives tokens', SLOW, async () => {
  const { auth, logIn } = await world({ headers: { 'x-team-key': 'key-of-the-team-1234' } });
  expect((await logIn()).code).toBe(0);
  expect(auth.seen.length).toBeGreaterThan(2);
  expect(auth.seen.filter(({ headers }) => headers.has('x-team-key'))).toEqual([]);
});

test('a token that has expired is refreshed once for all connections', SLOW, async () => {
  const { auth, server, logIn, home, login } = await world();
  await logIn();
  const loginsAt = join(home, 'state');
  const desks = await Promise.all([1, 2].map(() => desk([address(server.url, { name: 'docs' })], { loginsAt })));
  auth.expire();
  const asked = desks.flatMap((each) =>
    [1, 2, 3].map(() => call(each.line(), { server: 'docs', tool: 'echo', args: { message: 'x' } })),
  );
  expect(await Promise.all(asked)).toEqual(Array(6).fill({ output: 'Echo: x' }));
  expect(auth.issued.map(({ by }) => by)).toEqual(['code', 'refresh']);
  expect(login()).toEqual({ access: auth.issued[1]?.access, refresh: auth.issued[1]?.refresh });
});

test('a refreshed token and a header that the server repeats are hidden', SLOW, async () => {
  const { auth, server, logIn, home, login } = await world();
  await logIn();
  const spec = address(server.url, { name: 'docs', headers: { 'x-team-key': 'key-of-the-team-1234' } });
  const made = await desk([spec], { loginsAt: join(home, 'state') });
  auth.expire();
  const { output } = await call(made.line(), { server: 'docs', tool: 'leak' });
  expect(output).toMatch(/^I was sent Bearer \[redacted.*\] and \[redacted.*\]$/);
  expect(login().access).toBe(auth.issued[1]?.access);
});

test('a login that was revoked is removed, and the call says how to log in again', SLOW, async () => {
  const { auth, server, logIn, home, login } = await world();
  await logIn();
  const made = await desk([address(server.url, { name: 'docs' })], { loginsAt: join(home, 'state') });
  auth.revoke();
  const { output } = await call(made.line(), { server: 'docs', tool: 'echo' });
  expect(output).toContain('its login has ended; run: drover mcp login docs');
  expect(login().access).toBe('');
});

test('logout removes the login', SLOW, async () => {
  const { logIn, run, file, login } = await world();
  await logIn();
  expect((await run(['mcp', 'logout', 'docs', '--mcp', file])).stdout).toBe('The login at docs is removed.\n');
  expect(login().access).toBe('');
  expect((await run(['mcp', 'logout', 'docs', '--mcp', file])).stdout).toBe('There was no login at docs.\n');
});

test('a server without a login, a program and an unknown name are refused', SLOW, async () => {
  const open = await sdkServer();
  const home = await temporaryFolder();
  const file = join(home, 'servers.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { open: { url: open.url }, program: { command: 'true' } } }));
  const said = async (name: string) => (await drover(['mcp', 'login', name, '--mcp', file], { cwd: home })).stderr;
  expect(await said('open')).toContain('it asks for no login: it answers HTTP 200');
  expect(await said('program')).toContain('the MCP server program is a program');
  expect(await said('other')).toContain('there is no MCP server other; there are open, program');
  const none = await drover(['mcp', 'login', 'other'], { cwd: home });
  expect(none.stderr).toContain('there is no MCP server other, nor any other; add one with: drover mcp add NAME');
  const unsaid = await drover(['mcp', 'login', '--mcp', file], { cwd: home });
  expect(unsaid.stderr).toContain('say which server: drover mcp login NAME');
});

test('a login over plain http to another machine is refused', SLOW, async () => {
  const home = await temporaryFolder();
  const file = join(home, 'servers.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { far: { url: 'http://mcp.example.com/mcp' } } }));
  const { code, stderr } = await drover(['mcp', 'login', 'far', '--mcp', file], { cwd: home });
  expect([code, stderr]).toEqual([2, expect.stringContaining('a login needs https')]);
});

test('a token that a server repeats is in no event, no journal and no request', SLOW, async () => {
  const { logIn, server, file, home, login } = await world();
  await logIn();
  const script = planned({ one: { answers: [calls('mcp__docs__leak', {}), submits('done')] } });
  const runs = await RunDesk.with(script);
  const env = { DROVER_HOME: join(home, 'state') };
  const ran = await runs.run(['run', 'x', '--mcp', file, '--allow', 'mcp', '--workers', '1'], { env });
  expect(statuses(ran.end)).toEqual({ one: 'done' });
  expect(server.ran['leak']).toBe(1);
  const ended = ran.events.find((event) => event.type === 'tool_execution_end' && event.name === 'mcp__docs__leak');
  expect(ended).toMatchObject({ output: expect.stringMatching(/^I was sent Bearer \[redacted/) as string });
  const { access } = login();
  expect(access).toMatch(/^access-/);
  const files = readdirSync(join(home, 'state'), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile() && !each.parentPath.endsWith('logins'))
    .map((each) => readFileSync(join(each.parentPath, each.name), 'utf8'));
  expect(files.length).toBeGreaterThan(2);
  const requests = runs.server.requests.map(({ rawBody }) => rawBody);
  expect(
    [...files, ...requests, JSON.stringify(ran.events), ran.stderr].filter((text) => text.includes(access)),
  ).toEqual([]);
});
