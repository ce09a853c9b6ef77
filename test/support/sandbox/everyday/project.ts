// A small project in several languages for everyday commands: a repository with two commits and a change.

import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runSync } from '../../process/run-sync.ts';

const FILES: Readonly<Record<string, string>> = {
  'README.md': '# Sample\n\nA project for every day.\n\n- one\n- two\n- three\n',
  'package.json': JSON.stringify({
    name: 'sample',
    version: '1.0.0',
    license: 'MIT',
    main: 'src/index.js',
    files: ['src'],
    scripts: {
      test: 'node --test --test-reporter=tap test/ > /dev/null && echo tests pass',
      build: 'mkdir -p dist && cp src/index.js dist/ && echo built',
      fail: 'exit 3',
      where: 'pwd',
    },
  }),
  'src/index.js': 'exports.add = (a, b) => a + b;\nexports.name = "sample";\n',
  'src/util.mjs':
    "import { readFileSync } from 'node:fs';\nexport const lines = (path) => readFileSync(path, 'utf8').split('\\n').length;\n",
  'test/index.test.js':
    "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add } = require('../src/index.js');\ntest('adds', () => assert.equal(add(1, 2), 3));\n",
  'data/people.csv': 'name,age,town\nAda,36,London\nGrace,85,Arlington\nLinus,54,Portland\nBarbara,68,Boston\n',
  'data/numbers.txt': '5\n3\n9\n1\n3\n7\n',
  'data/config.json': '{"name":"sample","list":[1,2,3],"deep":{"on":true}}\n',
  'data/words.txt': 'apple banana apple\ncherry banana apple\nzoë ünïcödé 日本語\n',
  'data/config.yaml': 'name: sample\nlist:\n  - 1\n  - 2\n',
  'notes/todo list.txt': 'buy milk\ncall home\n',
  'calc/calc.py':
    'def double(n):\n    return 2 * n\n\n\nif __name__ == "__main__":\n    import sys\n    print(double(int(sys.argv[1])))\n',
  'calc/__init__.py': '',
  'calc/test_calc.py':
    'import unittest\nfrom calc.calc import double\n\n\nclass CalcTest(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(double(4), 8)\n',
  'c/main.c': '#include <stdio.h>\nint square(int);\nint main(void) { printf("%d\\n", square(7)); return 0; }\n',
  'c/square.c': 'int square(int n) { return n * n; }\n',
  'c/bad.c': 'int main(void) { return x; }\n',
  'c/crash.c': '#include <stdlib.h>\nint main(void) { abort(); }\n',
  Makefile:
    'CC = gcc\nall: app\napp: c/main.c c/square.c\n\t$(CC) -o app c/main.c c/square.c\nhello:\n\t@echo hello from make\nfail:\n\t@false\nclean:\n\trm -f app\n.PHONY: all hello fail clean\n',
  'java/Hello.java':
    'public class Hello { public static void main(String[] args) { System.out.println("hello " + args.length); } }\n',
  'rust/Cargo.toml':
    '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\ninner = { path = "inner" }\n',
  'rust/src/main.rs': 'fn main() { println!("{}", inner::twice(21)); }\n',
  'rust/inner/Cargo.toml': '[package]\nname = "inner"\nversion = "0.1.0"\nedition = "2021"\n',
  'rust/inner/src/lib.rs': 'pub fn twice(n: i32) -> i32 { 2 * n }\n#[test]\nfn works() { assert_eq!(twice(2), 4); }\n',
  'script.sh': '#!/usr/bin/env bash\nset -eu\necho "script with $# arguments: $*"\n',
  '.gitignore': 'dist\nnode_modules\napp\n*.o\n',
};

const DATE = '2024-05-06T07:08:09+0000';
const ENV = { GIT_AUTHOR_DATE: DATE, GIT_COMMITTER_DATE: DATE };

export function makeProject(folder: string): void {
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  chmodSync(join(folder, 'script.sh'), 0o755);
  symlinkSync('data/numbers.txt', join(folder, 'link.txt'));
  const git = (...args: readonly string[]) =>
    runSync('env', [...Object.entries(ENV).map(([name, value]) => `${name}=${value}`), 'git', ...args], {
      cwd: folder,
    });
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'A Person');
  git('config', 'user.email', 'person@example.com');
  git('add', 'README.md', 'package.json', '.gitignore');
  git('commit', '-q', '-m', 'Begin');
  git('add', '-A');
  git('commit', '-q', '-m', 'Add everything else');
  git('tag', 'v1');
  git('branch', 'feature');
  writeFileSync(join(folder, 'data/numbers.txt'), '5\n3\n9\n1\n4\n7\n');
  writeFileSync(join(folder, 'new.txt'), 'untracked\n');
}
