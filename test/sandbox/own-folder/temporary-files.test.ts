// A folder for temporary files inside the folder that is worked on: drover keeps sockets and compiled code there, so
// commands don't see it.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Program } from '../../cli/program.ts';
import { inSandbox, temporary } from '../../support/sandbox/box.ts';

async function exec(cwd: string, tmp: string, command: string) {
  const home = temporary();
  const script = join(home, 'script.yaml');
  writeFileSync(
    script,
    JSON.stringify({ answers: [{ calls: [{ name: 'shell', args: { command } }] }, { text: 'Done.' }] }),
  );
  const args = ['exec', 'go', '--model', `rehearsal/${script}`, '--net', '127.0.0.1:9', '--json'];
  const program = new Program(args, cwd, { env: { HOME: home, DROVER_HOME: join(home, 'state'), TMPDIR: tmp } });
  const { stdout, code } = await program.ended();
  const outputs = stdout
    .split('\n')
    .flatMap((line) => (line.includes('"tool_execution_end"') ? [String(JSON.parse(line).output)] : []));
  return { outputs, stderr: program.stderr, code };
}

inSandbox('temporary files in the folder that is worked on', () => {
  test('commands neither see nor change them', async () => {
    const cwd = temporary();
    const tmp = join(cwd, 'own', 'tmp');
    mkdirSync(tmp, { recursive: true });
    const command = 'find own; touch own/tmp/planted; mv own moved; echo "$TMPDIR"; mktemp -u';
    const { outputs } = await exec(cwd, tmp, command);
    expect(outputs).toEqual([
      expect.stringMatching(/^own\nown\/tmp\ntouch: .*Read-only file system\nmv: .*busy\n\/tmp\n\/tmp\/tmp\./),
    ]);
  });

  test('there is no sandbox in the folder for temporary files itself', async () => {
    const cwd = temporary();
    const { code, outputs, stderr } = await exec(cwd, cwd, 'touch ran');
    expect(code).toBe(8);
    expect(outputs).toEqual([expect.stringContaining('it would run outside a sandbox')]);
    expect(stderr).toContain('is the folder for temporary files');
  });
});
