// House rules that a machine can check. A rule that hurts is changed here, in a commit that says why.

import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { SHARED_TYPE_NAMES } from './tidy/exceptions.ts';

type File = { readonly path: string; readonly text: string; readonly code: string };

const load = (patterns: string[]): File[] =>
  globSync(patterns)
    .filter((path) => statSync(path).isFile())
    .map((path) => {
      const text = readFileSync(path, 'utf8');
      return { path, text, code: text.replace(/\/\*[\s\S]*?\*\/|(?<![:'"`\\/])\/\/.*/g, '') };
    });
const sources = load(['bin/**/*.ts', 'packages/*/src/**/*.ts']);
const tests = load(['test/**/*.ts', 'bench/**/*.ts', 'scripts/*.ts']);
const docs = load(['*.md', 'docs/**/*.md', 'packages/*/*.md', 'examples/**/*.md']);

const MAY_IMPORT: Record<string, readonly string[]> = {
  'packages/protocol': [],
  'packages/sandbox': [],
  'packages/documents': [],
  'packages/markdown': [],
  'packages/rehearsal': ['documents'],
  'packages/core': ['protocol', 'sandbox'],
  'packages/trust': ['core', 'protocol'],
  'packages/mcp': ['core', 'protocol', 'sandbox'],
  'packages/telemetry': ['protocol'],
  'packages/extensions': ['core', 'protocol', 'trust'],
  'packages/coordinator': ['core', 'protocol', 'sandbox'],
  'packages/worker': ['core', 'protocol'],
  'packages/client': ['protocol'], // types only
  'packages/hosts': ['coordinator', 'core', 'protocol'],
  'packages/server': ['client', 'coordinator', 'core', 'markdown', 'protocol'],
  bin: (
    'client coordinator core documents extensions hosts markdown mcp protocol rehearsal sandbox server telemetry ' +
    'trust worker'
  ).split(' '),
};

test('packages import only downwards', () => {
  const upward = sources.flatMap(({ path, code }) => {
    const home = Object.keys(MAY_IMPORT).find((folder) => path.startsWith(`${folder}/`)) ?? '';
    const used = [...code.matchAll(/(?:from |import\()'@drover\/(\w+)/g)].map((match) => match[1] ?? '');
    return used.filter((name) => !MAY_IMPORT[home]?.includes(name)).map((name) => `${path} -> ${name}`);
  });
  expect(upward).toEqual([]);
});

const HOME_OF: Record<string, string> = {
  '@anthropic-ai/sdk': 'packages/core/src/model/providers/anthropic.ts',
  openai: 'packages/core/src/model/providers/openai-',
  '@vscode/ripgrep': 'packages/core/src/tools/',
  diff: 'packages/core/src/tools/',
  unbash: 'packages/core/src/permission/',
  'p-queue': 'packages/coordinator/src/run/dispatch.ts',
  ioredis: 'packages/hosts/src/line/redis.ts',
  bullmq: 'packages/hosts/src/placing/queue.ts',
  piscina: 'packages/coordinator/src/pool/threads.ts',
  '@modelcontextprotocol/client': 'packages/mcp/src/sdk/',
  listr2: 'bin/views/dashboard/',
  hono: 'packages/server/src/',
  '@hono/node-server': 'packages/server/src/',
  yargs: 'bin/',
  pino: 'bin/',
  'smol-toml': 'packages/extensions/src/agents.ts',
  'string-width': 'bin/views/text/terminal-text.ts',
  marked: 'packages/markdown/src/block-stream.ts',
  'highlight.js': 'packages/markdown/src/highlight.ts',
};

test('each library has one home', () => {
  const strays = Object.entries(HOME_OF).flatMap(([library, home]) => {
    const imports = new RegExp(`(?:from |import\\()'${library}[/']`);
    return sources
      .filter(({ path, code }) => imports.test(code) && !path.startsWith(home))
      .map(({ path }) => `${path} uses ${library}`);
  });
  expect(strays).toEqual([]);
});

test('every file the docs name exists', () => {
  const named = docs.flatMap(({ text }) => [...text.matchAll(/`((?:bin|packages|test|bench|examples)\/[\w./-]+)`/g)]);
  expect(named.map((match) => match[1] ?? '').filter((path) => !existsSync(path))).toEqual([]);
});

// Commands and tools are lists: one file each, side by side.
const LISTS = ['bin/commands', 'packages/core/src/tools'];

const overfull = (files: readonly File[], most: number): readonly string[] =>
  [...Map.groupBy(files, ({ path }) => dirname(path))].filter(([, all]) => all.length > most).map(([folder]) => folder);

test('a folder holds at most nine source files, or fifteen of tests', () => {
  expect(overfull(sources, 9).filter((folder) => !LISTS.includes(folder))).toEqual([]);
  expect(overfull(tests, 15)).toEqual([]);
});

test('a type name is declared once in the coordinator', () => {
  const declared = sources
    .filter(({ path }) => path.startsWith('packages/coordinator/'))
    .flatMap(({ code }) => [...code.matchAll(/^(?:export )?(?:type|class) (\w+)/gm)].map((match) => match[1] ?? ''));
  expect(declared.filter((name, at) => declared.indexOf(name) !== at)).toEqual([]);
});

/** The types that each package exports under one name from several files, as `package: name`, sorted. */
function sharedTypeNames(): readonly string[] {
  const names = sources.flatMap(({ path, code }) => {
    const home = Object.keys(MAY_IMPORT).find((folder) => path.startsWith(`${folder}/`)) ?? '';
    return [...code.matchAll(/^export type (\w+)\b(?! *\})/gm)].map(([, name]) => `${home}: ${name}`);
  });
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))].sort();
}

test('a package exports each type name once', () => {
  expect(sharedTypeNames()).toEqual(SHARED_TYPE_NAMES);
});

test('no doc comment follows another one directly', () => {
  const doubled = [...sources, ...tests].filter(({ text }) => /\*\/\n\s*\/\*\*/.test(text));
  expect(doubled.map(({ path }) => path)).toEqual([]);
});

// The formatter holds only code to 120 characters.
test('no line of a comment is longer than 120 characters', () => {
  const long = [...sources, ...tests].flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, at) => (line.length > 120 && COMMENT.test(line) ? [`${path}:${at + 1}`] : [])),
  );
  expect(long).toEqual([]);
});

const COMMENT = /^\s*(\/\/|\/\*|\*)/;

const rules: [string, (file: File) => boolean][] = [
  ['every file says first what it is for', ({ text }) => /^(#!.*\n)?\/\/ \S/.test(text)],
  ['no file is longer than 400 lines', ({ text }) => text.split('\n').length <= 400],
  [
    'no barrels, default exports, enums or interfaces',
    ({ code }) => !/^export (\*|default|enum|interface)|^interface /m.test(code),
  ],
  [
    'an expected rejection is named: see packages/core/src/promises.ts',
    ({ path, code }) =>
      /^packages\/(core\/src\/promises\.ts|client\/|server\/src\/page\/|coordinator\/src\/pool\/)/.test(path) ||
      !/\.catch\(\(\) => undefined\)/.test(code),
  ],
  ['no catch lets an error vanish', ({ code }) => !/catch\s*(\(\w*\))?\s*\{\s*\}/.test(code)],
  [
    'only front doors see the process',
    ({ path, code }) =>
      /^(bin\/(drover|io|launcher|start\/settings)|packages\/worker\/src\/entry)\.ts$/.test(path) ||
      !/\bprocess\.(env|argv|exit|stdout|stderr|stdin|cwd|on)\b/.test(code),
  ],
  [
    'a name says what a thing is',
    ({ path, code }) =>
      !/\b\w*(Manager|Handler|Helper|Service|Processor|Utils?)\b(?!\s*:)/.test(code.replace(/'[^']*'/g, '')) &&
      !/(manager|handler|helper|utils?)s?\.ts$/.test(path),
  ],
  [
    'nothing is let through unchecked',
    ({ code }) => !/@ts-(ignore|nocheck|expect-error)|\bas any\b|: any\b|<any>/.test(code),
  ],
  [
    'a conversation knows no provider and no tool',
    ({ path, code }) =>
      path !== 'packages/core/src/conversation/conversation.ts' ||
      !/from '\.\.\/(tools|agent|permission|model\/(?!protocol\.ts))/.test(code),
  ],
  ['a TODO carries an issue number', ({ text }) => !/\b(TODO|FIXME|XXX)\b(?! #\d)/.test(text)],
];

test.each(rules)('%s', (_, holds) => {
  expect(sources.filter((file) => !holds(file)).map(({ path }) => path)).toEqual([]);
});

test('nothing is mocked but the model, and no test is left out', () => {
  const bad = /\bvi\.(mock|spyOn|fn)\(|\b(it|test|describe)\.(only|skip|todo)\(/;
  expect(
    tests.filter(({ path, code }) => bad.test(code) && !path.endsWith('tidy.test.ts')).map(({ path }) => path),
  ).toEqual([]);
});

test('every test file says first what it is about, and is no longer than 400 lines', () => {
  const bad = tests.filter(({ text }) => !/^\/\/ \S/.test(text) || text.split('\n').length > 400);
  expect(bad.map(({ path }) => path)).toEqual([]);
});

// The literal first argument of test, it and describe (the second of proves), and the name behind `.each(…)`.
const TEST_NAME =
  /\b(?:test|it|describe)(?:\.\w+)*\(\s*(['"`])(.*?)\1,|\bproves\(\s*'[\w.-]+',\s*(['"`])(.*?)\3,|\)\((['"`])(.*?)\5,/g;

test('a test name has at most 80 characters', () => {
  const names = tests.flatMap(({ code }) =>
    [...code.matchAll(TEST_NAME)].map((match) => match[2] ?? match[4] ?? match[6] ?? ''),
  );
  expect(names.length).toBeGreaterThan(2000);
  expect(names.filter((name) => name.length > 80)).toEqual([]);
});

test('no file names a registry, a key or a machine', () => {
  const everything = load([
    '*.{md,json,yaml,ts}',
    'docs/**/*.*',
    'scripts/*.ts',
    'bin/**/*.*',
    'packages/*/src/**',
    'packages/*/*.{json,md}',
    'test/**/*.ts',
    'bench/**',
    'examples/**/*.*',
    '.ci/*',
  ]).filter(({ path }) => !path.endsWith('tidy.test.ts'));
  const bad = /registry\.[a-z]+js\.org|\/work\/(main|shared)|\/root\/|\/home\/[a-z]+\//;
  expect(everything.filter(({ text }) => bad.test(text)).map(({ path }) => path)).toEqual([]);
});

test('packages that the bundle leaves out are dependencies', () => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object };
  const config = readFileSync('rolldown.config.ts', 'utf8');
  const external = /external = \[(.*)\]/.exec(config)?.[1]?.split(', ') ?? [];
  const names = external.map((each) => each.replaceAll(/^['/^]+|['/]+$/g, '').replaceAll('\\', ''));
  expect(names).toContain('@vscode/ripgrep');
  // That one makes threads of the pool polite, where it is there.
  expect(names.filter((name) => !Object.hasOwn(dependencies, name))).toEqual(['@napi-rs/nice']);
});
