// Stored sessions: drover runs, show and logs, and how a session is named.

import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { journalFileHead, readJournalContents, sealJournalRecord } from '@drover/core/journal/file/format';
import { journalPath } from '@drover/core/journal/session-journal';
import { expect, test } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { Desk, steady } from '../desk.ts';
import { FakeIo, temporaryFolder } from '../fake-io.ts';
import { until } from '../../support/until.ts';

const SCRIPT = `order: conversation
answers:
  - {thinking: Hm., text: I look., calls: [{name: list, args: {path: project}}]}
  - {text: Nothing there.}
  - {text: Still nothing.}
`;
const ONE = ['--cwd', 'project', '--turns', '1'];

async function deskWithProject(): Promise<Desk> {
  const desk = await Desk.with(SCRIPT.replace('path: project', 'path: .'));
  await mkdir(join(desk.cwd, 'project'));
  return desk;
}

test('show without an id shows the newest session of the folder', async () => {
  const desk = await deskWithProject();
  const below = join(desk.cwd, 'project', 'src');
  await mkdir(below);
  await desk.exec('above', 'what is above?');
  await desk.exec('here', 'what is here?', ['--cwd', 'project']);
  const shown = async (cwd: string) => {
    const { stdout } = await desk.run(['show', '--json'], { cwd, env: { DROVER_HOME: desk.home } });
    return JSON.parse(stdout).id as string;
  };
  expect([await shown(below), await shown(desk.cwd)]).toEqual(['here', 'above']);
  const elsewhere = await temporaryFolder();
  const { code, stderr } = await desk.run(['show'], { cwd: elsewhere, env: { DROVER_HOME: desk.home } });
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('there is no run or session of <cwd>; name one of another'),
  ]);
});

/** One session of each kind, the newest last. */
async function deskWithSessions(): Promise<Desk> {
  const desk = await deskWithProject();
  for (const name of ['finished', 'stopped', 'crashed', 'broken', 'future', 'busy'])
    await desk.exec(name, `what is ${name}?`, [...ONE.slice(0, 2), ...(name === 'stopped' ? ['--turns', '1'] : [])]);
  await desk.rewrite('crashed', (await desk.records('crashed')).slice(0, 6));
  await desk.rewrite('busy', (await desk.records('busy')).slice(0, 6));
  const broken = journalPath(desk.home, 'broken');
  await writeFile(broken, (await readFile(broken, 'utf8')).replace('Nothing there.', 'Nothing here.'));
  await desk.rewrite('future', await desk.records('future'), { ...journalFileHead({ session: 'future' }), journal: 2 });
  await desk.occupy('busy');
  return desk;
}

test('runs lists sessions newest first, at full width without a screen', async () => {
  const desk = await deskWithSessions();
  const { code, stdout, stderr } = await desk.run(['runs']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const rows = steady(stdout)
    .replaceAll(/ +<ago> +/g, '  <ago>  ')
    .trimEnd()
    .split('\n');
  expect([rows[0]?.replace(/when +/, 'when  '), ...rows.slice(1).sort()]).toMatchInlineSnapshot(`
    [
      "  kind     id        when  state          work  model                     title",
      "! session  broken  <ago>  damaged      1 turn  rehearsal/../script.yaml  what is broken?",
      "! session  future  <ago>  newer        1 turn  rehearsal/../script.yaml  what is future?",
      "● session  busy  <ago>  live         1 turn  rehearsal/../script.yaml  what is busy?",
      "◐ session  crashed  <ago>  interrupted  1 turn  rehearsal/../script.yaml  what is crashed?",
      "✓ session  finished  <ago>  done         1 turn  rehearsal/../script.yaml  what is finished?",
      "✗ session  stopped  <ago>  incomplete   1 turn  rehearsal/../script.yaml  what is stopped?",
    ]
  `);
});

test('runs fits forty columns, and lists only the newest twenty by default', async () => {
  const desk = await deskWithProject();
  await desk.exec(
    'a-name-that-is-longer-than-it-should-be',
    '\u001b]0;gotcha\u0007看看 what there is \u202eand go on\nwith it',
    ONE,
  );
  const [first] = (await desk.run(['runs', '--json'])).stdout.split('\n');
  for (let at = 0; at < 24; at++) await desk.copy('a-name-that-is-longer-than-it-should-be', `copy-${at}`);
  const narrow = { columns: 40, env: { NO_COLOR: '1' } };
  const newest = (await desk.run(['runs'], narrow)).stdout.trimEnd().split('\n');
  const all = (await desk.run(['runs', '--all'], narrow)).stdout.trimEnd().split('\n');
  const wide = await desk.run(['runs', '--all'], { columns: 100 });
  expect([newest.length, newest.at(-1)]).toEqual([22, '  … 5 more; drover runs --all shows them']);
  // The width of the age column varies.
  expect(steady(all.find((line) => line.includes('a-name')) ?? '')).toMatch(
    /^✗ a-name-that… {2}<ago> {2,4}看看 what the?r?…$/,
  );
  expect(wide.stdout.trimEnd().split('\n')).toHaveLength(26);
  expect(['gotcha', '\u202e', '\u001b]'].filter((trick) => wide.stdout.includes(trick))).toEqual([]);
  expect(JSON.parse(first ?? '')).toMatchObject({
    state: 'incomplete',
    live: false,
    turns: 1,
    model: 'rehearsal/../script.yaml',
  });
});

test('runs explains how to begin if there are no runs', async () => {
  const desk = await Desk.with(SCRIPT);
  const { code, stdout } = await desk.run(['runs'], { columns: 40, env: { NO_COLOR: '1' } });
  expect(code).toBe(0);
  expect(`\n${stdout}`).toMatchInlineSnapshot(`
    "
    No runs or sessions yet.
    drover records everything that agents
    do. You can inspect and resume it from
    here.

      drover run "add types to src"
        begins a run in this repository
      drover exec "fix the failing test"
        begins a session in this folder
      drover demo
        shows a run, without a key
    "
  `);
  expect(await desk.run(['runs', '--json'])).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('show prints the whole session and how to resume it', async () => {
  const desk = await deskWithProject();
  await desk.exec('tour', 'what is here?\nlook well', ONE);
  await desk.run(['exec', 'and now?', '--session', 'tour']);
  const { code, stdout, stderr } = await desk.run(['show', 'tour']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(`\n${steady(stdout)}`).toMatchInlineSnapshot(`
    "
    what is here?
      session tour
      model   rehearsal/../script.yaml
      folder  <cwd>/project
      begun   <date>, last heard of <ago>
      state   ✓ done
      turns   2
      used    <tokens>
      prompt  <figures>, window 200,000 tokens

    ❯ what is here?
      look well

      · thought for <time>

    I look.

      ▸ list: .
      ✓ <time>  (empty folder)

    ✗ incomplete: the limit of 1 steps is reached
      <time> · <tokens>

    ❯ and now?

    Nothing there.

    ✓ done  <time> · <tokens>

    say more with: drover exec --session tour "…"
    "
  `);
});

test('show fits a narrow terminal', async () => {
  const desk = await deskWithProject();
  await desk.exec('tour', 'what is in this folder, and in all the folders that are below it?', ONE);
  const { stdout } = await desk.run(['show', 'tour'], { columns: 40, env: { NO_COLOR: '1' } });
  const words = stdout.replaceAll(/\S{30,}/g, '<long>');
  expect(Math.max(...words.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
});

test('show --json sums up a session in one object', async () => {
  const desk = await deskWithProject();
  await desk.exec('tour', 'what is here?', ONE);
  const { stdout } = await desk.run(['show', 'tour', '--json']);
  expect(JSON.parse(stdout)).toEqual({
    kind: 'session',
    id: 'tour',
    title: 'what is here?',
    state: 'incomplete',
    reason: 'the limit of 1 steps is reached',
    startedAt: expect.any(String),
    updatedAt: expect.any(String),
    model: 'rehearsal/../script.yaml',
    cwd: '<cwd>/project',
    turns: 1,
    messages: 3,
    calls: 1,
    denied: [],
    usage: { input: expect.any(Number), output: expect.any(Number), cacheRead: 0, cacheWrite: 0 },
    tokens: {
      estimate: expect.any(Number),
      reported: expect.any(Number),
      ratio: expect.any(Number),
      window: 200_000,
    },
  });
});

test('show prints the readable part of a damaged journal and the place of the damage', async () => {
  const desk = await deskWithSessions();
  const shown = await desk.run(['show', 'broken']);
  const logged = await desk.run(['logs', 'broken', '--json']);
  const line = logged.stdout.split('\n').length + 1;
  const stderr = `drover: <cwd>/.drover/sessions/broken/journal.jsonl:${line} is damaged: its seal does not fit: a byte was changed here, or a line is missing before it; the 4 lines behind it are not shown\n`;
  expect([shown.code, shown.stderr, logged.code, logged.stderr]).toEqual([2, stderr, 2, stderr]);
  expect(shown.stdout).toContain('  state   ! damaged\n');
  expect(shown.stdout).toContain('I look.');
  expect(shown.stdout).not.toContain('Nothing here');
  expect((await desk.run(['resume', 'broken'])).code).toBe(2);
});

test('a journal of a newer drover is read-only and marked as newer', async () => {
  const desk = await deskWithSessions();
  const stderr =
    'drover: <cwd>/.drover/sessions/future/journal.jsonl was written by a newer drover (format 2); use that one\n';
  const before = await readFile(journalPath(desk.home, 'future'));
  for (const argv of [
    ['show', 'future'],
    ['resume', 'future'],
    ['replay', 'future'],
    ['exec', 'go', '--session', 'future'],
  ]) {
    const ran = await desk.run(argv);
    expect([ran.code, ran.stderr]).toEqual([2, stderr]);
  }
  const { code, stdout } = await desk.run(['logs', 'future']);
  expect([code, steady(stdout).split('\n')[0]]).toEqual([2, '<clock>  0.0   session_start']);
  expect(await readFile(journalPath(desk.home, 'future'))).toEqual(before);
});

test('logs prints one line per record', async () => {
  const desk = await deskWithProject();
  await desk.exec('tour', 'what is\u001b[2J here?', ONE);
  const { code, stdout, stderr } = await desk.run(['logs', 'tour']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(`\n${steady(stdout)}`).toMatchInlineSnapshot(`
    "
    <clock>  0.0   session_start            rehearsal/../script.yaml in <cwd>/project
    <clock>  1.0   message_start            user
    <clock>  1.0   message_end              user: what is here?
    <clock>  1.1   message_start            assistant
    <clock>  1.1   thinking_start
    <clock>  1.1   thinking_end             Hm.
    <clock>  1.1   text_start
    <clock>  1.1   text_end                 I look.
    <clock>  1.1   toolcall_start           list
    <clock>  1.1   toolcall_end             list {"path":"."}
    <clock>  1.1   usage                    <tokens>
    <clock>  1.1   message_end              assistant: [thinking] I look. [list]
    <clock>  1.1   tool_execution_start     list: .
    <clock>  1.1   tool_execution_end       list: . — (empty folder)
    <clock>  1.1   message_start            tool
    <clock>  1.1   message_end              tool: list ok
    <clock>  1.1   incomplete               the limit of 1 steps is reached
    <clock>  1.1   session_end              incomplete: the limit of 1 steps is reached, <tokens>
    "
  `);
  const narrow = await desk.run(['logs', 'tour'], { columns: 40, env: { NO_COLOR: '1' } });
  expect(Math.max(...narrow.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
});

test('logs --json prints the records unchanged', async () => {
  const desk = await deskWithProject();
  await desk.exec('tour', 'what is here?', ONE);
  const { stdout } = await desk.run(['logs', 'tour', '--json']);
  const records = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  expect(JSON.stringify(records)).toBe(JSON.stringify(await desk.records('tour')).replaceAll(desk.cwd, '<cwd>'));
});

test('logs --follow prints new records until the session is free', async () => {
  const desk = await Desk.with('answers: [{calls: [{name: shell, args: {command: sleep 0.5}}]}, {text: Over.}]');
  const fake = new FakeIo({ cwd: desk.cwd });
  const working = main(['exec', 'go', '--session', 's', '--yes', '--model', 'rehearsal/script.yaml'], fake.io);
  await until(() => fake.stdout.includes('sleep'));
  const { code, stdout } = await desk.run(['logs', 's', '--follow', '--json']);
  await working;
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  expect([code, lines]).toEqual([0, JSON.parse(JSON.stringify(await desk.records('s')).replaceAll(desk.cwd, '<cwd>'))]);
});

test('logs --follow checks new records and names a damaged line', async () => {
  const desk = await deskWithProject();
  await desk.exec('s', 'see', ONE);
  const [path, before] = [journalPath(desk.home, 's'), await desk.records('s')];
  await desk.occupy('s');
  const fake = new FakeIo({ cwd: desk.cwd });
  const following = main(['logs', 's', '--follow', '--json'], fake.io);
  const told = () => fake.stdout.split('\n').slice(0, -1);
  await until(() => told().length >= before.length);
  const { lastSum } = readJournalContents(await readFile(path));
  const good = sealJournalRecord({ v: 1, seq: 99, type: 'warning', message: 'good' }, lastSum);
  const bad = sealJournalRecord({ v: 1, seq: 100, type: 'warning', message: 'bad' }, lastSum); // sealed as if the good record were missing
  await appendFile(path, `${good.text}\n${bad.text}\n`);
  expect(await following).toBe(2);
  expect(told().length).toBe(before.length + 1);
  expect(told().at(-1)).toContain('good');
  const line = before.length + 3; // after the header: the earlier records, and the good one
  expect(fake.stderr).toBe(
    `drover: ${path}:${line} is damaged: its seal does not fit: a byte was changed here, or a line is missing before it\n`,
  );
});

test('logs --follow ends with SIGINT', async () => {
  const desk = await deskWithSessions();
  const fake = new FakeIo({ cwd: desk.cwd });
  const following = main(['logs', 'busy', '--follow'], fake.io);
  await until(() => fake.stdout.includes('message_end'));
  fake.stop('SIGINT');
  expect(await following).toBe(130);
});

test('a session is found by its id or by a unique prefix', async () => {
  const desk = await deskWithProject();
  const [one, two] = ['ses_aaaa1111', 'ses_aaaa2222'].map((id) => id.padEnd(36, '0'));
  await desk.exec('tour', 'see', ONE);
  await desk.copy('tour', one ?? '');
  await desk.copy('tour', two ?? '');
  const meant = async (typed: string): Promise<unknown> => {
    const { code, stdout, stderr } = await desk.run(['show', typed, '--json']);
    return code === 0 ? (JSON.parse(stdout) as { readonly id: string }).id : [code, stderr];
  };
  const short = ['aaaa1111', 'aaaa2222'].map((id) => `${id} (see)`);
  expect(await meant('tour')).toBe('tour');
  expect(await meant('t')).toBe('tour');
  await desk.copy('tour', 'tour-two');
  expect(await meant('tour')).toBe('tour');
  expect(await meant(one ?? '')).toBe(one);
  expect(await meant('ses_aaaa1')).toBe(one);
  expect(await meant('aaaa2')).toBe(two);
  expect(await meant('aaaa')).toEqual([
    2,
    expect.stringMatching(/^drover: 'aaaa' may be any of aaaa[12]{4} \(see\), aaaa[12]{4} \(see\); type more of it\n$/),
  ]);
  expect(await meant('tuor')).toEqual([
    2,
    "drover: there is no run or session 'tuor'; the nearest is tour (see); drover runs lists them\n",
  ]);
  const unknown = await desk.run(['logs', 'zzz']);
  expect([unknown.code, short.every((each) => unknown.stderr.includes(each))]).toEqual([2, true]);
  expect((await desk.run(['--get-yargs-completions', 'drover', 'show', 'a'])).stdout.trim().split('\n')).toEqual([
    'aaaa1111',
    'aaaa2222',
  ]);
});

test('--session takes a prefix of a generated id, or a whole name', async () => {
  const desk = await deskWithProject();
  await desk.exec('tour', 'see', ONE);
  await desk.copy('tour', `ses_${'b'.repeat(32)}`);
  const first = async (name: string): Promise<string | undefined> =>
    (await desk.exec(name, 'more')).stdout.split('\n')[0];
  expect(await first('bbbbbbbb')).toBe('resuming session bbbbbbbb: rehearsal/../script.yaml in <cwd>/project');
  expect(await first('tou')).toBe('drover rehearsal/script.yaml in <cwd>');
  expect((await desk.exec('ses_cc', 'more')).code).toBe(2);
});

test.each([
  ['below /proc', '/proc/nope', 'ENOENT'],
  ['below a file', 'script.yaml/state', 'ENOTDIR'],
  ['that is a file', 'script.yaml', 'ENOTDIR'],
])('a home %s is reported before anything runs', async (_, home, problem) => {
  const desk = await Desk.with(SCRIPT);
  const env = { HOME: desk.cwd, DROVER_HOME: home };
  const argv = ['exec', 'go', '--model', 'rehearsal/script.yaml'];
  const shown = home.startsWith('/') ? home : `<cwd>/${home}`;
  const stderr = `drover: cannot write to ${shown} (${problem}); set DROVER_HOME to a folder that can be written\n`;
  expect(await desk.run(argv, { env })).toEqual({ code: 2, stdout: '', stderr });
  expect(await desk.run([...argv, '--session', 's'], { env })).toEqual({ code: 2, stdout: '', stderr });
  expect((await desk.run(['runs'], { env })).stdout).toContain('No runs or sessions yet');
});
