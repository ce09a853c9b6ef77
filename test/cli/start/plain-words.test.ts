// The fast reader of command lines agrees with yargs. A sample; the slow lane runs more.

import { expect, test } from 'vitest';
import { parsePlainCommandLine } from '../../../bin/start/plain-words.ts';
import { declared, plainOnes, withTwo } from '../../support/data/command-lines.ts';

test.each([
  ['one word', declared],
  ['two words', withTwo],
])('with %s possible, plain command lines are read as yargs reads them', async (_, command) => {
  expect(await plainOnes(command, 400)).toBeGreaterThan(50);
});

test('three words are not plain where two are allowed', () => {
  expect(parsePlainCommandLine(withTwo, ['a', 'b'])).toEqual({ word: 'a', second: 'b', texts: new Map() });
  expect(parsePlainCommandLine(withTwo, ['a', 'b', 'c'])).toBeUndefined();
});

test('the former name of an option is plain', () => {
  expect(parsePlainCommandLine(declared, ['go', '--turns', '3', '--steps=4'])).toEqual({
    word: 'go',
    texts: new Map([
      ['turns', ['3']],
      ['steps', ['4']],
    ]),
  });
});

test('an ordinary command line is plain', () => {
  expect(
    parsePlainCommandLine(declared, [
      'fix the test',
      '--model',
      'a/b',
      '--json',
      '--allow',
      'shell(x *)',
      '--allow=read',
    ]),
  ).toEqual({
    word: 'fix the test',
    texts: new Map([
      ['model', ['a/b']],
      ['json', ['']],
      ['allow', ['shell(x *)', 'read']],
    ]),
  });
});
