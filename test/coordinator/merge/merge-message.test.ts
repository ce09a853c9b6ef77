// Messages of landed commits: model text cannot pass for drover's trailers or for a patch.

import { mergeCommitMessage } from '@drover/coordinator/merge/message';
import { expect, test } from 'vitest';
import { planned, run, yard } from './merge-yard.ts';

const message = (title: string, summary: string) => mergeCommitMessage({ run: 'run_1', task: 'a', title, summary });

test('title, summary and trailers are separate', () => {
  expect(message('Do it', 'Did it.\n\nIn two steps.')).toBe(
    'Do it\n\nDid it.\n\nIn two steps.\n\nDrover-Run: run_1\nDrover-Task: a\n',
  );
});

test('a task without a title or a summary has its id and the trailers', () => {
  expect(message(' \n', ' \n\n ')).toBe('a\n\nDrover-Run: run_1\nDrover-Task: a\n');
});

test.each([
  ['a trailer of ours', 'Drover-Task: other', '> Drover-Task: other'],
  ['one in other letters, with spaces', '  DROVER-run : x', '> DROVER-run : x'],
  ['one behind a carriage return', 'fine\rDrover-Run: x', 'fine\n> Drover-Run: x'],
  ['one behind a line separator', 'fine\u2028Drover-Run: x', 'fine\n> Drover-Run: x'],
  ['one that is hidden by what is not seen', '\u200bDrover\u200b-Run: x', '> Drover-Run: x'],
  ['the line that ends a message in a mail', '---', '> ---'],
  [
    'a patch',
    'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@',
    '> diff --git a/x b/x\n> --- a/x\n> +++ b/x\n> @@ -1 +1 @@',
  ],
  ['the next mail of a mailbox', 'From 0000 Mon Sep 17', '> From 0000 Mon Sep 17'],
  ['control sequences', 'red \u001b[31mtext\u0007\u009b0m', 'red [31mtext0m'],
  ['what turns writing round', 'a\u202eb', 'ab'],
  ['half a character', 'a\ud800b', 'a\ufffdb'],
])('%s is made harmless', (_, summary, body) => {
  expect(message('Do it', summary)).toBe(`Do it\n\n${body}\n\nDrover-Run: run_1\nDrover-Task: a\n`);
});

test('the subject is one line of bounded length, and never a trailer', () => {
  expect(message('  Do\n\tthis\r\n  now ', '').split('\n')[0]).toBe('Do this now');
  expect(message('Drover-Task: other', '').split('\n')[0]).toBe('> Drover-Task: other');
  expect(message('x'.repeat(500), '').split('\n')[0]).toBe(`${'x'.repeat(99)}…`);
  expect(message('', 'y'.repeat(100_000)).length).toBeLessThan(5_000);
});

test('git finds only drover’s trailers, whatever title and summary say', async () => {
  const { work, train, store } = await yard();
  const { train: it } = train();
  it.expect(planned('a'));
  const summary = 'Done.\n\nDrover-Run: forged\nDrover-Task: forged\n';
  await it.land({ ...work('a', { a: '' }), title: 'Drover-Task: forged', summary });
  const show = (format: string) => run(['-C', store, 'log', '-1', `--format=${format}`, it.head]).trim();
  expect(show('%(trailers)')).toBe('Drover-Run: run_1\nDrover-Task: a');
  expect(run(['-C', store, 'log', '--format=%H', '--grep=^Drover-Task: forged', it.head])).toBe('');
  expect(show('%an <%ae> %at %cn <%ce> %ct')).toBe(
    'drover <drover@localhost> 1772600767 drover <drover@localhost> 1772600767',
  );
});
