// A run in the sandbox: what workers, gates and setup reach, and what a broken sandbox leaves behind.

import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Shown } from '@drover/core/bus';
import { expect, onTestFinished, test } from 'vitest';
import { calls, planned, RunDesk, says, statuses, submits, writes } from '../../support/run/run-desk.ts';
import { inSandbox } from '../../support/sandbox/box.ts';

const shell = (command: string) => calls('shell', { command });

/** The output of the workers' commands, in order. */
function printed(events: readonly Shown[]): readonly string[] {
  return events.flatMap((event) =>
    event.type === 'tool_execution_end' && event.name === 'shell' ? [event.output] : [],
  );
}

async function webServer(): Promise<{ readonly port: number; readonly asked: string[] }> {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('from outside');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => server.close().closeAllConnections());
  return { port: (server.address() as AddressInfo).port, asked };
}

inSandbox('a run in the sandbox', () => {
  test('everyday commands run without approval, and their results land', async () => {
    const command = `node -e "require('fs').writeFileSync('n.txt', 'n')"; git log --oneline; sed -i s/one/two/ a.txt; echo ok`;
    const desk = await RunDesk.with(planned({ one: { answers: [shell(command), submits('done')] } }));
    const { code, events, end } = await desk.run(['run', 'go', '--gate', 'test -f n.txt', '--allow-red-base']);
    expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
    expect(events.filter(({ type }) => type === 'permission_request')).toEqual([]);
    expect(desk.delivered(end.run ?? '')).toEqual({ 'a.txt': 'two', 'n.txt': 'n' });
    expect(events[0]).toMatchObject({ type: 'run_start', sandbox: { mode: 'auto', used: 'bubblewrap' } });
  });

  test("a command sees no checkout, no other workspace, no state of drover's and no key", async () => {
    const planted = 'sk-ant-planted-0123456789abcdef';
    const desk = await RunDesk.with({ answers: [] });
    const command = [
      `cat ${desk.repository}/a.txt`,
      `ls ${desk.home} ${desk.home}/runs`,
      'cat /proc/*/environ | tr "\\\\0" "\\\\n" | grep -a planted',
      'env | grep -i anthropic',
    ].join('; ');
    const script = planned({ one: { answers: [shell(`${command}; true`), submits('done')] } });
    const other = await RunDesk.with(script);
    const env = { ANTHROPIC_BASE_URL: other.server.url, ANTHROPIC_API_KEY: planted };
    const { code, events } = await desk.run(['run', 'go'], { env });
    const [output = ''] = printed(events);
    expect(code).toBe(0);
    expect(output.split('\n').filter((line) => !/No such file or directory|^workspaces$|:$|^$/.test(line))).toEqual([]);
    expect(JSON.stringify(other.server.requests)).not.toContain(planted);
  });

  test('neither a worker nor a gate writes into another slot', async () => {
    const desk = await RunDesk.with({ answers: [] });
    const reach = `for each in ${desk.home}/workspaces/*/slots/*/tree; do echo x > $each/taken; done; true`;
    const script = planned({
      one: { answers: [shell('sleep 1'), writes('one.txt', '1'), submits('done')] },
      two: { answers: [shell(reach), writes('two.txt', '2'), submits('done')] },
    });
    const other = await RunDesk.with(script);
    const args = ['run', 'go', '--workers', '2', '--gate', `${reach} && test -f a.txt`];
    const { code, end } = await desk.run(args, { env: { ANTHROPIC_BASE_URL: other.server.url } });
    expect(code).toBe(0);
    const taken = globSync(join(desk.home, 'workspaces/*/slots/*/tree/taken'));
    // Each command could write in its own workspace, which drover has cleaned or delivered.
    expect(taken.length).toBeLessThan(readdirSync(join(desk.home, 'workspaces')).length + 2);
    expect(Object.keys(desk.delivered(end.run ?? '')).toSorted()).toEqual(['a.txt', 'one.txt', 'taken', 'two.txt']);
  });

  test('a sandbox that breaks fails the attempt with its own kind, and the work is kept', async () => {
    const desk = await RunDesk.with({ answers: [] });
    // This happens while the coordinator plans, before a worker's sandbox starts ahead.
    const breaks = () => {
      for (const folder of globSync(join(desk.home, 'sandbox/etc-*'))) rmSync(folder, { recursive: true });
      return undefined;
    };
    const work = planned({ one: { answers: [writes('kept.txt', 'kept'), shell('echo never'), says('not reached')] } });
    const script = { ...work, answers: [breaks, ...(work.answers ?? [])] };
    const other = await RunDesk.with(script);
    const { code, end, events } = await desk.run(['run', 'go'], { env: { ANTHROPIC_BASE_URL: other.server.url } });
    const [row] = end.tasks;
    expect([code, row?.status, row?.failure?.kind]).toEqual([3, 'failed', 'sandbox.failed']);
    expect(desk.git('show', `${row?.branch}:kept.txt`)).toBe('kept');
    expect(printed(events).every((output) => output.startsWith('Not run: the sandbox did not start'))).toBe(true);
    expect(JSON.stringify(other.server.requests)).not.toContain('not reached');
  });

  test('--net lets commands reach a host, refuses others, and both are reported', async () => {
    const { port, asked } = await webServer();
    const command = `node -e "fetch('http://localhost:${port}/in').then((r) => r.text()).then(console.log)"; curl -sS http://far.example.com/`;
    const desk = await RunDesk.with(planned({ one: { answers: [shell(command), submits('done')] } }));
    const { code, events, end } = await desk.run(['run', 'go', '--net', `localhost:${port}`]);
    expect([code, asked]).toEqual([0, ['/in']]);
    expect(printed(events)[0]).toContain('from outside');
    const told = events.flatMap((event) =>
      event.type === 'network' ? [[event.host, event.allowed, event.task, event.worker]] : [],
    );
    expect(told).toEqual([
      ['localhost', true, 'one', 1],
      ['far.example.com', false, 'one', 1],
    ]);
    const { stdout } = await desk.drover(['show', end.run ?? '']);
    expect(stdout).toContain('hosts refused: far.example.com:80; allow one with --net HOST');
  });

  test('refusals of one host are few events, and the report has their number', async () => {
    const command = 'for i in $(seq 21); do curl -s http://far.example.com/; done';
    const desk = await RunDesk.with(planned({ one: { answers: [shell(command), submits('done')] } }));
    const { events, end } = await desk.run(['run', 'go', '--net', 'near.example.com']);
    const times = events.flatMap((event) => (event.type === 'network' ? [event.times ?? 1] : []));
    expect(times).toEqual([1, 1, 2, 4, 8, 5]);
    const { stdout } = await desk.drover(['show', end.run ?? '']);
    expect(stdout).toContain('hosts refused: far.example.com:80 (21 times)');
  });

  test('--writable lets commands write to a folder outside, and a resumed run keeps it', async () => {
    const desk = await RunDesk.with({ answers: [] });
    const cache = join(desk.folder, 'cache');
    mkdirSync(cache);
    const command = `echo x > ${cache}/written; touch ${cache}/at-work; sleep 30`;
    const script = planned({
      one: { answers: [shell(command), shell(`echo y >> ${cache}/written`), submits('done')] },
    });
    const other = await RunDesk.with(script, { 'a.txt': 'one\n' });
    const args = ['run', 'go', '--workers', '1', '--writable', cache];
    const ran = await other.interrupted(args, () => existsSync(join(cache, 'at-work')));
    const { end, events } = await other.run(['resume']);
    expect([ran.code, end.exitCode, readFileSync(join(cache, 'written'), 'utf8')]).toEqual([130, 0, 'x\ny\n']);
    expect(events[0]).toMatchObject({ sandbox: { used: 'bubblewrap', writable: [cache] } });
  });

  test('paths that are denied to the file tools are hidden or read-only inside', async () => {
    const command = 'cat s*.txt; cat d*/key; echo changed > k*.txt; cat k*.txt';
    const script = planned({ one: { answers: [shell(command), submits('done')] } });
    const files = { 'secret.txt': 'the secret\n', 'deep/key': 'the key\n', 'kept.txt': 'as it was\n' };
    const desk = await RunDesk.with(script, files);
    const rules = ['--deny', 'read(secret.txt)', '--deny', 'read(deep/**)', '--deny', 'write(kept.txt)'];
    const { events } = await desk.run(['run', 'go', ...rules]);
    const [output = ''] = printed(events);
    expect(output).toContain('as it was');
    expect(output).toContain('Read-only file system');
    expect(output).not.toMatch(/the secret|the key/);
  });

  test('a path that is denied to reading is in no search, no diff and no plan', async () => {
    const files = { 'secret/key': 'needle one\n', 'open.txt': 'needle two\n' };
    const looks = [
      { name: 'grep', args: { pattern: 'needle' } },
      { name: 'glob', args: { pattern: '**/*' } },
      { name: 'git', args: { action: 'status' } },
      { name: 'git', args: { action: 'diff' } },
    ];
    const script = planned({ one: { answers: [{ calls: looks }, submits('done')] } });
    const desk = await RunDesk.with({ ...script, answers: [{ calls: looks }, ...(script.answers ?? [])] }, files);
    await desk.write({ 'secret/key': 'needle three\n', 'open.txt': 'needle four\n' });
    const { code, events } = await desk.run(['run', 'go', '--deny', 'read(secret/**)']);
    const told = events.flatMap((event) => (event.type === 'tool_execution_end' ? [event.output] : [])).join('\n');
    expect([code, told.includes('needle two'), told.includes('needle four')]).toEqual([0, true, true]);
    expect(told).not.toMatch(/needle one|needle three|secret\/key/);
  });

  test('a repository that a worker makes runs none of its filters outside', async () => {
    const desk = await RunDesk.with({ answers: [] }, { 'a.txt': 'one\n' });
    const taken = join(desk.folder, 'taken');
    const command = [
      'git init -q x && cd x && echo 1 > f && git add f && git -c user.name=a -c user.email=a@b commit -qm i',
      `echo '* filter=e' > .gitattributes && git config filter.e.clean 'touch ${taken}; cat' && echo 2 > f`,
      'cd .. && printf "two\\n" > a.txt',
    ].join(' && ');
    const other = await RunDesk.with(planned({ one: { answers: [shell(command), submits('done')] } }));
    const { code, events } = await desk.run(['run', 'go'], { env: { ANTHROPIC_BASE_URL: other.server.url } });
    expect([code, existsSync(taken)]).toEqual([0, false]);
    expect(events.filter(({ type }) => type === 'warning')).toMatchObject([
      { message: 'x is a git repository of its own, and is left out' },
    ]);
  });

  test('a setup command and a gate fail where they need the network', async () => {
    const desk = await RunDesk.with(planned({ one: { answers: [writes('b.txt', 'b'), submits('done')] } }));
    const gate = 'curl -sS https://far.example.com/';
    const { code, events } = await desk.run(['run', 'go', '--gate', gate, '--setup', 'touch /tmp/prepared']);
    expect(code).toBe(4);
    const outputs = events.flatMap((event) => (event.type === 'gate_end' ? [event.output] : []));
    expect(outputs[0]).toContain('the user can allow it with --net far.example.com');
  });
});
