// A call's arguments as models and servers write them: accepted forms, and those that never run.

import { parseWireArguments } from '@drover/core/model/wire/arguments';
import { expect, test } from 'vitest';

const twice = (value: unknown): string => JSON.stringify(JSON.stringify(value));

test.each([
  ['nothing', ''],
  ['blanks', ' \n'],
  ['null', 'null'],
  ['an empty text', '""'],
  ['null in a text', '"null"'],
  ['an empty object', ' {} '],
])('%s means no arguments', (_, text) => {
  expect(parseWireArguments(text)).toEqual({ args: {} });
});

test('a problem in long arguments quotes the place of the mistake', () => {
  const text = `{"a": "${'x'.repeat(300)}", oops: 1, "c": "${'y'.repeat(300)}"}`;
  expect(parseWireArguments(text)).toEqual({ args: {}, problem: expect.stringContaining('oops') });
});

test.each([
  ['an object', '{"path":"a"}'],
  ['an object in a text', twice({ path: 'a' })],
])('%s is the arguments', (_, text) => {
  expect(parseWireArguments(text)).toEqual({ args: { path: 'a' } });
});

test.each([
  ['an object in a text in a text', JSON.stringify(twice({ path: 'a' })), /^the arguments are not a JSON object but /],
  ['a list', '["a"]', /^the arguments are not a JSON object but \["a"\]$/],
  ['a number', '7', /^the arguments are not a JSON object but 7$/],
  [
    'garbage behind the object',
    '{"path":"a"}} and so on',
    /^the arguments are not one JSON object: .*near ".*and so on"$/,
  ],
  ['two objects', '{"path":"a"}{"path":"b"}', /^the arguments are not one JSON object: /],
  ['half an object', '{"path":"a', /^the arguments are not one JSON object: .*near "/],
  ['a NUL', String.raw`{"path":"a\u0000b"}`, /^the arguments hold a NUL character$/],
  ['a NUL in a name', String.raw`{"a\u0000":1}`, /^the arguments hold a NUL character$/],
  [
    'what is nested too deep',
    `${'{"a":'.repeat(300)}1${'}'.repeat(300)}`,
    /^the arguments are nested more than 200 deep$/,
  ],
])('%s is reported as a problem, without arguments', (_, text, problem) => {
  expect(parseWireArguments(text)).toEqual({ args: {}, problem: expect.stringMatching(problem) });
});
