// A corpus of tricks: outside the sandbox none runs without approval, and a narrow rule allows none.

import { expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { everyday } from './everyday.ts';
import { refusals } from './refusals.ts';
import { judgeCommand, type Settings } from './tools.ts';

const ASK = { effect: 'ask', why: 'it would run outside a sandbox' };
const NARROW = { allow: ['shell(ls*)', 'shell(cat*)', 'shell(echo*)', 'shell(git status*)', 'shell(cd*)'] };

async function allowedOf(commands: readonly string[], settings: Settings): Promise<readonly string[]> {
  const verdicts = await Promise.all(commands.map((command) => judgeCommand(command, settings)));
  return commands.filter((_, at) => verdicts[at]?.effect === 'allow');
}

proves('permission.asked', 'outside the sandbox every command without a rule is asked about', async () => {
  const commands = [...everyday, ...Object.values(refusals).flat()];
  expect(commands.length).toBeGreaterThan(600);
  for (const command of commands) expect(await judgeCommand(command), command).toEqual(ASK);
});

test('inside the sandbox every command runs unasked', async () => {
  const commands = [...everyday, ...Object.values(refusals).flat()];
  expect(await allowedOf(commands, { contained: true })).toEqual(commands);
});

// Classes in which every command does more than a rule for its first words allows.
test.each([
  'more than one command',
  'substitution',
  'where output goes',
  'wrapped',
  'spelling',
  'interpreters',
  'variables in front',
])('rules for the first command of a trick allow none of: %s', async (name) => {
  const commands = refusals[name] ?? [];
  expect(commands.length).toBeGreaterThan(10);
  expect(await allowedOf(commands, { rules: NARROW })).toEqual([]);
});

const COVERED = [
  'ls',
  'ls -la src',
  'cat README.md 2>/dev/null',
  'git status --short',
  'echo "a b" | cat',
  'cd src && ls',
];

const SUFFIXES = [
  '; touch made',
  ' && touch made',
  ' || touch made',
  '\ntouch made',
  ' | sh',
  ' | tee made',
  ' | xargs rm',
  ' & touch made',
  ' &',
  ' > made',
  ' >> made',
  ' 2> made',
  ' &> made',
  ' < made',
  ' > /dev/null/../made',
  ' $(touch made)',
  ' `touch made`',
  ' <(touch made)',
  ' > >(sh)',
  ' "$(touch made)"',
  ' ${x:=$(touch made)}',
  ' $((a[$(touch made)]))',
  ' <<EOF\n$(touch made)\nEOF',
  '; eval "touch made"',
  '; . ./made',
  '; }',
  '; trap "touch made" EXIT',
  '; ls() { touch made; }',
  '; PATH=.',
];

proves('permission.asked', 'a covered command is asked about with anything after it', async () => {
  expect(await allowedOf(COVERED, { rules: NARROW })).toEqual(COVERED);
  const longer = COVERED.flatMap((command) => SUFFIXES.map((suffix) => command + suffix));
  expect(await allowedOf(longer, { rules: NARROW })).toEqual([]);
});

test('a deny rule blocks few everyday commands, and none inside the sandbox', async () => {
  const rules = { deny: ['shell(git push*)'] };
  const refused = everyday.length - (await allowedOf(everyday, { rules, yes: true })).length;
  expect(refused).toBeLessThanOrEqual(5);
  expect(await allowedOf(everyday, { rules, contained: true })).toEqual(everyday);
});
