// Projects of other managers than npm: each workspace has its own venv or target folder, with its own paths.

import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { planned, RunDesk, statuses, submits, writes } from '../support/run/run-desk.ts';

const PYTHON = {
  '.gitignore': '.venv/\n',
  'requirements.txt': '# none\n',
  'app/__init__.py': 'NAME = "checkout"\n',
};
const IDLE = planned({ one: { answers: [writes('b.txt', 'b\n'), submits('b')] } });

test('a Python project gets a new venv in each workspace, with its own paths', async () => {
  const desk = await RunDesk.with(IDLE, PYTHON);
  await desk.write({ '.venv/pyvenv.cfg': 'home = nowhere\n' });
  const gate =
    '.venv/bin/python -c "import sys, os; assert os.path.realpath(sys.prefix) == os.path.realpath(\'.venv\')"';
  const { code, end, stderr } = await desk.run(['run', 'go', '--setup', 'auto', '--gate', gate], {
    // The HOME of a test lacks the user's pyenv.
    env: { PYENV_ROOT: process.env['PYENV_ROOT'] ?? join(homedir(), '.pyenv') },
  });
  expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
  expect(stderr).toContain("each workspace runs 'python3 -m venv .venv && .venv/bin/python -m pip install");
  expect(stderr).toContain('--net pypi.org');
}, 240_000);

const CRATE = {
  '.gitignore': 'target/\n',
  'Cargo.toml': '[package]\nname = "c"\nversion = "0.1.0"\nedition = "2021"\n',
  'Cargo.lock': 'version = 3\n\n[[package]]\nname = "c"\nversion = "0.1.0"\n',
  'src/lib.rs': 'pub fn answer() -> i32 { 42 }\n\n#[test]\nfn is_right() { assert_eq!(answer(), 42); }\n',
};

function hasCargo(): boolean {
  try {
    execFileSync('cargo', ['--version']);
    return true;
  } catch {
    return false;
  }
}

test.skipIf(!hasCargo())(
  'a crate is built in the workspace, and red code is found',
  async () => {
    const breaks = writes('src/lib.rs', CRATE['src/lib.rs'].replace('{ 42 }', '{ 41 }'));
    const desk = await RunDesk.with(planned({ one: { answers: [breaks, submits('41')] } }), CRATE);
    const env = { RUSTUP_HOME: process.env['RUSTUP_HOME'] ?? join(homedir(), '.rustup') };
    const { code, end } = await desk.run(['run', 'go', '--gate', 'cargo test --offline -q'], { env });
    expect([code, statuses(end)]).toEqual([4, { one: 'gate_failed' }]);
  },
  240_000,
);
