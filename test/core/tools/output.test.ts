// Bounded output: both ends shown, the whole on disk, binary data described.

import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toolOutputText } from '@drover/core/tools/output/bytes';
import { boundOutputText, Capture, OUTPUT_CHARS_MAX } from '@drover/core/tools/output/capture';
import { Deltas } from '@drover/core/tools/output/deltas';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/workspace.ts';

async function captured(...chunks: (string | Buffer)[]) {
  const file = join(await temporaryFolder(), 'deep', 'call.txt');
  const capture = new Capture(file);
  for (const chunk of chunks) await capture.write(Buffer.from(chunk));
  return { file, ...(await capture.finish()) };
}

test('output that fits is returned unchanged, without a file', async () => {
  const { file, text } = await captured('a'.repeat(20_000), 'ä'.repeat(10_000));
  expect(text).toBe('a'.repeat(20_000) + 'ä'.repeat(10_000));
  await expect(stat(file)).rejects.toThrow('ENOENT');
});

test.each([
  ['a little too long', 31_000],
  ['longer than what is kept in memory', 400_000],
])('both ends remain of output that is %s, and the file has all of it', async (_, size) => {
  const whole = Array.from({ length: size / 10 }, (_, index) => `${String(index).padStart(9, '.')}\n`).join('');
  const chunks = whole.match(/[^]{1,7777}/g) ?? [];
  const { file, text, bytes } = await captured(...chunks);

  const [, head, shown, where, tail] =
    /^([^]*)\n\[… (.*) left out; the whole output is in (.*) …\]\n([^]*)$/.exec(text) ?? [];
  expect(text.length).toBeLessThanOrEqual(OUTPUT_CHARS_MAX);
  expect(whole.startsWith(`${head}\n`)).toBe(true);
  expect(whole.endsWith(`\n${tail}`)).toBe(true);
  expect(head?.length).toBeGreaterThan(11_000);
  expect(tail?.length).toBeGreaterThan(15_500);
  const leftOut = size - (head?.length ?? 0) - (tail?.length ?? 0);
  expect(shown).toBe(`${(leftOut / 1_000).toFixed(1)} KB`);
  expect(where).toBe(file);
  expect(bytes).toBe(size);
  expect(await readFile(file, 'utf8')).toBe(whole);
});

test('a cut never splits a character', async () => {
  for (const lead of ['', 'x', 'xx', 'xxx']) {
    const { text } = await captured(lead + '🦊'.repeat(60_000));
    expect(text.replace(/\[….*…\]/, '')).toMatch(/^x*(🦊)+\n\n(🦊)+$/u);
  }
});

test('a character that arrives in two pieces is joined', async () => {
  const fox = Buffer.from('🦊');
  expect((await captured(fox.subarray(0, 2), fox.subarray(2))).text).toBe('🦊');
});

test('an unwritable file loses the file, not the output', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'in-the-way'), '');
  const capture = new Capture(join(folder, 'in-the-way', 'call.txt'));
  for (let index = 0; index < 20; index++) await capture.write(Buffer.from(`${index} `.repeat(10_000)));
  const { text, file } = await capture.finish();
  expect(text).toMatch(/^0 0 0 [^]*left out; it could not be kept \((EEXIST|ENOTDIR)[^]* 19 19 $/);
  expect(file).toBeUndefined();
});

test('long text from a tool is bounded in the same way', async () => {
  const path = join(await temporaryFolder(), 'call.txt');
  const text = '🦊'.repeat(700_000);
  expect((await boundOutputText(text, path)).length).toBeLessThanOrEqual(OUTPUT_CHARS_MAX);
  expect(await readFile(path, 'utf8')).toBe(text);
});

test.each([
  ['text', Buffer.from('plain ünïcode 🦊'), 'plain ünïcode 🦊'],
  ['nothing', Buffer.alloc(0), ''],
  ['terminal colours', Buffer.from('\x1b[31mred'), '\x1b[31mred'],
  ['a picture', Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0', 'latin1'), 'binary data, 18 bytes'],
  ['zeroes', Buffer.alloc(2_500_000), 'binary data, 2.5 MB'],
  ['UTF-16', Buffer.from('hello', 'utf16le'), 'binary data, 10 bytes'],
  ['a byte that is no text', Buffer.from([0xff]), 'binary data, 1 byte'],
  ['one stray byte in a text', Buffer.from('the na\xefve log line', 'latin1'), 'the na[1 byte not text]ve log line'],
  [
    'characters of three bytes round a stray byte',
    Buffer.concat([Buffer.from('日本語€€€€€€€€€€'), Buffer.from([0xff]), Buffer.from('€日')]),
    '日本語€€€€€€€€€€[1 byte not text]€日',
  ],
  ['a stray byte at the end', Buffer.from('a long enough line \xe9', 'latin1'), 'a long enough line [1 byte not text]'],
  [
    'names ended by NUL',
    Buffer.from('first/file.txt\0second/file.txt\0'),
    'first/file.txt[1 byte not text]second/file.txt[1 byte not text]',
  ],
  [
    'an overlong form',
    Buffer.concat([Buffer.from('twenty-two characters '), Buffer.from([0xc0, 0xaf])]),
    'twenty-two characters [2 bytes not text]',
  ],
])('%s is shown or described', (_, bytes, text) => {
  expect(toolOutputText(bytes)).toBe(text);
});

test('binary output of any size is described by its size', async () => {
  const { text, file } = await captured(Buffer.alloc(300_000), Buffer.alloc(300_000, 0xff));
  expect(text).toBe(`binary data, 600.0 KB; the whole output is in ${file}`);
});

test('live output comes at once, then in batches, and never splits a character', async () => {
  const deltas = new Deltas();
  const fox = Buffer.from('🦊');
  deltas.push(Buffer.concat([Buffer.from('first '), fox.subarray(0, 1)]));
  const seen: string[] = [];
  for await (const delta of deltas) {
    seen.push(delta);
    if (seen.length > 1) continue;
    deltas.push(fox.subarray(1));
    deltas.push(Buffer.from(' second'));
    setTimeout(() => deltas.close(), 20);
  }
  expect(seen).toEqual(['first ', '🦊 second']);
});

test('of live output that is faster than its reader the latest is shown', async () => {
  const deltas = new Deltas();
  for (let index = 0; index < 10_000; index++) deltas.push(Buffer.from(`${index}\n`));
  deltas.close();
  const [delta = '', ...more] = await Array.fromAsync(deltas);
  expect(delta.length).toBeLessThanOrEqual(8_000);
  expect(delta.endsWith('\n9998\n9999\n')).toBe(true);
  expect(more).toEqual([]);
});
