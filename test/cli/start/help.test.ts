// The ways to ask for help: `drover` alone, `help`, `version`, short flags and completion scripts.

import { execFileSync } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { drover, temporaryFolder } from '../fake-io.ts';
import { LAUNCHER } from '../program.ts';

const TERMINAL = { columns: 80, typed: [] };

test('drover alone on a terminal without a model shows an overview and the next step', async () => {
  const { code, stdout, stderr } = await drover([], TERMINAL);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('drover demo ');
  expect(stdout).toMatch(/^Next: no model is chosen\. Set ANTHROPIC_API_KEY/m);
});

test('drover alone on a terminal with a model opens the chat', async () => {
  const cwd = await temporaryFolder();
  await mkdir(join(cwd, '.config/drover'), { recursive: true });
  await writeFile(join(cwd, '.config/drover/config.yaml'), 'model: anthropic/claude-sonnet-4-5\n');
  // On a dumb terminal the chat itself prints what is missing.
  const env = { ANTHROPIC_API_KEY: 'test-key', TERM: 'dumb' };
  const { code, stderr } = await drover([], { ...TERMINAL, cwd, env });
  expect({ code, stderr: stderr.slice(0, 43) }).toEqual({
    code: 2,
    stderr: 'drover: drover chat needs a terminal that c',
  });
});

test.each([['version'], ['-v'], ['-V']])('%s prints the version', async (word) => {
  expect(await drover([word])).toEqual(await drover(['--version']));
});

test('help is --help, and help with a command is the help of that command', async () => {
  expect(await drover(['help'])).toEqual(await drover(['--help']));
  expect(await drover(['help', 'run'])).toEqual(await drover(['run', '--help']));
  expect((await drover(['help', 'rnu'])).stderr).toContain('did you mean run?');
});

test('help exit-codes has the table, and help of a command points to it', async () => {
  expect((await drover(['help', 'exit-codes'])).stdout).toMatch(/^ {2}0 {2}done\n[^]*^130 {2}SIGINT$/m);
  const { stdout } = await drover(['help', 'exec']);
  expect(stdout).toContain('Exit codes: drover help exit-codes');
  expect(stdout).not.toContain('143');
});

test('help writes placeholders as <file>, and shows short forms', async () => {
  const { stdout } = await drover(['help', 'run']);
  expect(stdout).toMatch(/-m, --model +<provider\/name>: /);
  expect(stdout).toMatch(/--plan +<file>: /);
  expect(stdout.match(/^ *(?:-\w, )?--\S+ +[A-Z]{2,}:/gm)).toBeNull();
});

test('-m, -C, -y and -w are --model, --cwd, --yes and --workers', async () => {
  const long = ['--model', 'absent/x', '--cwd', '.', '--yes', '--workers', 'many'];
  const short = ['-m', 'absent/x', '-C', '.', '-y', '-w', 'many'];
  const ran = await drover(['run', 'go', ...short]);
  expect(ran).toEqual(await drover(['run', 'go', ...long]));
  expect(ran.stderr).toMatch(/^drover: --workers: /);
  expect((await drover(['exec', 'go', '-m', 'absent/x'])).stderr).toContain("there is no provider 'absent'");
  expect((await drover(['exec', 'go', '-C', 'missing', '-m', 'a/b'])).stderr).toContain('missing');
});

test('an unknown shell is refused with the known ones', async () => {
  const { code, stderr } = await drover(['completion', 'tcsh']);
  expect([code, stderr]).toEqual([
    2,
    'drover: drover completion takes one of bash, zsh, fish; source what it prints\n',
  ]);
});

test('each shell gets its own completion script', async () => {
  expect((await drover(['completion', 'zsh'])).stdout).toMatch(/^#compdef drover\n/);
  expect((await drover(['completion', 'fish'])).stdout).toContain('complete -c drover ');
  expect(await drover(['completion'], { env: { SHELL: '/usr/bin/fish' } })).toEqual(
    await drover(['completion', 'fish']),
  );
  expect((await drover(['--get-yargs-completions', 'drover', 'completion', ''])).stdout).toBe('bash\nzsh\nfish\n');
});

test('bash completes a command with the script', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'drover'), `#!/bin/sh\nexec '${process.execPath}' '${LAUNCHER}' "$@"\n`);
  await chmod(join(folder, 'drover'), 0o755);
  const { stdout: script } = await drover(['completion', 'bash']);
  const ask = 'COMP_WORDS=(drover reh); COMP_CWORD=1; _drover_completions; echo "${COMPREPLY[*]}"';
  const env = { PATH: `${folder}:${process.env['PATH']}`, HOME: folder };
  expect(execFileSync('bash', ['-c', `${script}\n${ask}`], { env, encoding: 'utf8' })).toBe('rehearse\n');
});
