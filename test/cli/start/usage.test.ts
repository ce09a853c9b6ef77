// Mistakes on the command line: one sentence, the fix, exit code 2.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commands } from '../../../bin/drover.ts';
import { drover, temporaryFolder } from '../fake-io.ts';

const MODEL = ['--model', 'anthropic/any'];
const NAMES = [...commands.map(({ name }) => name), 'completion'];

test.each<[string, readonly string[], string]>([
  ['no command', [], `say what to do: ${NAMES.join(', ')}; drover --help lists the commands`],
  ['a misspelt command', ['exce', 'go'], "there is no command 'exce'; did you mean exec?"],
  ['an unknown command', ['fly', 'me'], "there is no command 'fly'; drover --help lists the commands"],
  [
    'a flag before the command',
    ['--json', 'exec', 'go'],
    'the command comes first, and then --json; drover --help lists the commands',
  ],
  ['a misspelt flag', ['exec', 'go', '--modle', 'x/y'], 'drover exec has no --modle; did you mean --model?'],
  ['a misspelt flag with =', ['exec', 'go', '--modle=x/y'], 'drover exec has no --modle; did you mean --model?'],
  ['an unknown flag', ['exec', 'go', '--fly'], 'drover exec has no --fly; see drover exec --help'],
  ['an unknown letter', ['exec', 'go', '-q'], 'drover exec has no -q; see drover exec --help'],
  ['the flag of another command', ['demo', '--model', 'x/y'], 'drover demo has no --model; see drover demo --help'],
  [
    'a flag in camel case',
    ['exec', '--promptFile', 'x'],
    'drover exec has no --promptFile; did you mean --prompt-file?',
  ],
  ['a flag without its value', ['exec', 'go', '--model'], '--model needs a value; see drover exec --help'],
  ['a flag with an empty value', ['exec', 'go', '--model='], '--model: it needs a value'],
  ['a flag given twice', ['exec', 'go', '--model', 'a/b', '--model', 'c/d'], '--model: give it once'],
  [
    'a prompt without quotes',
    ['exec', 'fix', 'the', 'test'],
    'drover exec takes one prompt; if it has spaces, put it in quotes',
  ],
  [
    'two prompts behind --',
    ['exec', '--', 'a', 'b'],
    'drover exec takes one prompt; if it has spaces, put it in quotes',
  ],
  ['a word too many', ['demo', 'now'], 'drover demo takes no further words; see drover demo --help'],
  [
    'no prompt',
    ['exec', ...MODEL],
    'no prompt given; run drover exec "fix the failing test", or pass - to read it from standard input',
  ],
  ['an empty prompt', ['exec', ' ', ...MODEL], 'the prompt is empty; say what the agent should do'],
  [
    'a prompt and a prompt file',
    ['exec', 'go', '--prompt-file', 'x'],
    'give the prompt on the command line or with --prompt-file, not both',
  ],
  ['no script', ['rehearse'], 'drover rehearse needs <script>; see drover rehearse --help'],
  [
    'a duration that is none',
    ['exec', 'go', '--timeout', '30x'],
    "--timeout: '30x' is not a duration; write it like 500ms, 90s, 30m or 1h30m",
  ],
  [
    'a budget that is none',
    ['exec', 'go', '--budget', '5eur'],
    "--budget: '5eur' is not a budget; write it like 5usd, 0.50usd, 200ktok or 1mtok",
  ],
  [
    'a number of steps that is none',
    ['exec', 'go', '--steps', 'many'],
    "--steps: 'many' is not a whole number from 1 to 10000",
  ],
  ['steps under both names', ['exec', 'go', '--steps', '3', '--turns', '3'], '--steps: give it once'],
  ['a misspelt --steps', ['exec', 'go', '--step', '3'], 'drover exec has no --step; did you mean --steps?'],
  ['a misspelt --turns', ['exec', 'go', '--turn', '3'], 'drover exec has no --turn; see drover exec --help'],
  ['a count that is none', ['exec', 'go', '--turns', 'many'], "--turns: 'many' is not a whole number from 1 to 10000"],
  ['a negative count', ['exec', 'go', '--turns', '-5'], "--turns: '-5' is not a whole number from 1 to 10000"],
  [
    'a view there is not',
    ['exec', 'go', '--view', 'jsn'],
    "--view: 'jsn' is none of lines, json, silent; did you mean json?",
  ],
  [
    'a rule that is none',
    ['exec', 'go', '--deny', 'shell rm'],
    '--deny: "shell rm" is no rule: "(" or the end is expected, not " ", at position 6; a right one is shell(pnpm test*), write(src/**), read or *',
  ],
  [
    'two views',
    ['exec', 'go', '--json', '--view', 'lines'],
    '--json and --view lines contradict each other; give one of them',
  ],
  [
    'nothing to show',
    ['show'],
    'there are no runs or sessions yet; begin one with: drover run "replace moment with date-fns"',
  ],
  [
    'a session there is not',
    ['show', 'abc'],
    'there is no run or session \'abc\', nor any other; begin one with: drover run "replace moment with date-fns"',
  ],
  [
    'nothing to go on with',
    ['resume'],
    'there are no runs or sessions yet; begin one with: drover run "replace moment with date-fns"',
  ],
  ...['a/b', '..', '', 'x'.repeat(65), '-x', 'a b', 'é'].map((name): [string, readonly string[], string] => [
    `the name '${name}' for a session`,
    ['exec', 'go', `--session=${name}`],
    `--session: '${name}' is no name; a session is named with 1 to 64 letters, digits, "-", "_" or ".", of which the first is a letter or digit`,
  ]),
  ['a folder there is not', ['exec', 'go', '--cwd', 'no-such'], '--cwd: there is no folder <cwd>/no-such'],
  ['a flag with a value it cannot have', ['exec', 'go', '--yes=maybe'], '--yes takes no value; see drover exec --help'],
])('%s is answered with the fix', async (_, argv, sentence) => {
  expect(await drover(argv)).toEqual({ code: 2, stdout: '', stderr: `drover: ${sentence}\n` });
});

test('a missing prompt file is named', async () => {
  const ran = await drover(['exec', ...MODEL, '--prompt-file', 'no-such.md']);
  const stderr = 'drover: the prompt file <cwd>/no-such.md cannot be read (ENOENT); check the path\n';
  expect(ran).toEqual({ code: 2, stdout: '', stderr });
});

test.each<[string, Uint8Array, string]>([
  ['is not UTF-8', Uint8Array.of(0x67, 0xff, 0x6f), 'is not UTF-8 text; convert it to UTF-8'],
  ['is empty', Uint8Array.of(0x20, 0x0a), 'is empty; say what the agent should do'],
])('a prompt that %s is refused, from a file and from stdin', async (_, bytes, problem) => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'prompt.md'), bytes);

  const fromFile = await drover(['exec', '--prompt-file', 'prompt.md'], { cwd });
  const fromStdin = await drover(['exec', '-'], { cwd, stdin: bytes });

  expect(fromFile).toEqual({ code: 2, stdout: '', stderr: `drover: the prompt from prompt.md ${problem}\n` });
  expect(fromStdin).toEqual({ code: 2, stdout: '', stderr: `drover: the prompt from standard input ${problem}\n` });
});

test('control sequences in typed arguments are not echoed to the terminal', async () => {
  const { stderr } = await drover(['\u001b[31mred\u001b]52;c;aGk=\u0007']);
  expect(stderr).toBe("drover: there is no command 'red'; drover --help lists the commands\n");
});

test('--version prints exactly the version of package.json', async () => {
  expect(await drover(['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
});

test('help lists every command', async () => {
  const { code, stdout, stderr } = await drover(['--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [head = '', list = '', tail = ''] = stdout.split(/^Commands:\n|^Options:\n/m);
  expect(head).toBe('drover <command>\n\nOne goal, many agents, one tested result.\n\n');
  expect([...list.matchAll(/^ {2}drover (\S+)/gm)].map(([, name]) => name)).toEqual(NAMES);
  const told = list.replaceAll(/\s+/g, ' ');
  expect(commands.filter(({ about }) => !told.includes(` ${about} `))).toEqual([]);
  expect(tail).toContain('drover run "replace moment');
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
});

test('help of a command has groups, examples and exit codes, and fits the terminal', async () => {
  const { code, stdout, stderr } = await drover(['exec', '-h'], { columns: 100 });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(`\n${stdout}`).toMatchInlineSnapshot(`
    "
    drover exec [prompt] [options]

    Run one agent in this folder until it is done, without supervision.

    Positionals:
      prompt  Task of the agent; - reads it from standard input

    Model:
      -m, --model  <provider/name>: Model to use (default: of your config, else of your key)

    Input:
          --prompt-file  <file>: Read the prompt from a file
          --session      <name>: Continue the session of this name, or start it
      -C, --cwd          <dir>: Folder to work in (default: the current folder)

    Output:
          --view  lines|json|silent: Output format (default: lines)
          --json  Print one JSON event per line; same as --view json
          --log   <file>: Write diagnostics to a file; DROVER_LOG sets their level

    Permission:
          --allow          <rule>: Allow matching calls, such as 'shell(pnpm test*)' (repeatable)
          --ask            <rule>: Ask before matching calls; wins over --allow (repeatable)
          --deny           <rule>: Deny matching calls; wins over --ask and --yes (repeatable)
          --trust-project  Count all files of this project as approved
      -y, --yes            Approve every question; deny rules still apply

    Sandbox:
          --sandbox   auto|required|off: Run commands in a sandbox if possible, always, or never
                      (default: auto; in CI: required)
          --net       <host>: Host that commands in the sandbox may reach (repeatable)
          --writable  <path>: Path outside the workspace that commands in the sandbox may write to
                      (repeatable)

    Limits:
          --steps    <n>: Maximum number of steps (default: 200)
          --timeout  <time>: Time limit, such as 90s, 30m or 1h30m (default: none)
          --budget   <amount>: Maximum to spend, such as 5usd or 200ktok (default: no limit)
          --gate     <cmd>: Command that must pass when the agent is done (repeatable)

    Tools:
          --mcp  <file>: MCP servers to use, in a file like .mcp.json (repeatable)

    Options:
      -h, --help  Show help

    Examples:
      drover exec "fix the failing test" --model          With ANTHROPIC_API_KEY set
      anthropic/claude-sonnet-4-5
      drover exec - --json < prompt.txt                   For scripts: the prompt from standard input,
                                                          events as JSON
      drover exec "update the docs" --allow 'shell(pnpm   Allow some commands, cap the cost
      *)' --budget 2usd
      drover exec "and now the tests" --session docs      Continue the session of this name

    Exit codes: drover help exit-codes
    "
  `);
  const narrow = await drover(['exec', '--help'], { columns: 60 });
  expect(Math.max(...narrow.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(60);
});

test('the completion script completes commands and flags', async () => {
  const script = await drover(['completion']);
  const commands = await drover(['--get-yargs-completions', 'drover', 'e']);
  const flags = await drover(['--get-yargs-completions', 'drover', 'exec', '--mo']);
  const views = await drover(['--get-yargs-completions', 'drover', 'exec', '--view', '']);

  expect(script.stdout).toContain('complete -o filenames -F _drover_completions drover');
  expect(commands).toEqual({
    code: 0,
    stdout: `${NAMES.join('\n')}\n`,
    stderr: '',
  });
  expect(flags.stdout.split('\n')).toContain('--model');
  expect(views.stdout.split('\n')).toEqual(expect.arrayContaining(['lines', 'json', 'silent']));
});

test('a folder in place of a config file is named', async () => {
  const cwd = await temporaryFolder();
  await mkdir(join(cwd, '.config/drover/config.yaml'), { recursive: true });
  const ran = await drover(['exec', 'go', ...MODEL], { cwd });
  const stderr =
    'drover: <cwd>/.config/drover/config.yaml is a folder, not a regular file; replace it with a regular file\n';
  expect(ran).toEqual({ code: 2, stdout: '', stderr });
});
