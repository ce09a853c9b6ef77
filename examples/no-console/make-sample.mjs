// Makes a small repository to try the batch on: node make-sample.mjs FOLDER [FILES]
//
// FILES modules (60 unless said otherwise) that write to the console, a logger they could use, and a test.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const AREAS = ['billing', 'cart', 'catalog', 'mail', 'search', 'users'];
const WORDS = ['create', 'find', 'list', 'merge', 'check', 'send', 'load', 'store', 'round', 'sort'];

const [folder, files = '60'] = process.argv.slice(2);
if (folder === undefined) throw new Error('name a folder: node make-sample.mjs FOLDER');

const write = (path, text) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};

for (let at = 0; at < Number(files); at++) {
  const area = AREAS[at % AREAS.length];
  const word = WORDS[Math.floor(at / AREAS.length) % WORDS.length];
  const name = `${word}${Math.floor(at / (AREAS.length * WORDS.length)) || ''}`;
  write(
    `src/${area}/${name}.js`,
    `// ${name}, of ${area}.

export function ${word}(items) {
  console.log('${word}', items.length);
  if (items.length === 0) console.warn('nothing to ${word}');
  return items.map((item) => ({ ...item, ${word}: true }));
}
`,
  );
}
write(
  'src/log.js',
  `// The logger: one JSON line a message.

const line = (level) => (message, details) => process.stderr.write(\`\${JSON.stringify({ level, message, details })}\\n\`);

export const log = { info: line('info'), warn: line('warn'), error: line('error') };
`,
);
write(
  'test/modules.test.js',
  `import assert from 'node:assert';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';

test('every module does what it is called', async () => {
  const files = readdirSync('src', { recursive: true }).filter((path) => /[/\\\\].*[.]js$/.test(path));
  assert.notEqual(files.length, 0);
  for (const path of files) {
    const [[name, run]] = Object.entries(await import(\`../src/\${path}\`));
    assert.deepEqual(run([{ id: 1 }]), [{ id: 1, [name]: true }]);
  }
});
`,
);
write('package.json', `${JSON.stringify({ name: 'shop', private: true, type: 'module' }, undefined, 2)}\n`);
write('README.md', '# A shop\n\nA sample.\n');

const git = (...args) => execFileSync('git', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
git('init', '-q', '-b', 'main');
git('add', '-A');
git('-c', 'user.name=Sample', '-c', 'user.email=sample@example.com', 'commit', '-q', '-m', 'A shop');
