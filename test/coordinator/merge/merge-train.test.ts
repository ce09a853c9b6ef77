// The merge train: landing order, conflicts, and cost in processes.

import { setTimeout as delay } from 'node:timers/promises';
import type { Git } from '@drover/coordinator/git/git';
import { mergeConflictMessage } from '@drover/coordinator/merge/merge';
import { DroverError } from '@drover/core/errors';
import { describe, expect, test } from 'vitest';
import { type Changes, planned, run, story, yard } from './merge-yard.ts';

describe('order', () => {
  const changes: Record<string, Changes> = {
    a: { 'new-a.txt': 'a\n' },
    b: { 'a.txt': 'ONE\ntwo\nthree\n' },
    c: { 'a.txt': 'one\ntwo\nTHREE\n' },
  };

  // The tasks of a group arrive together; the next group comes when the train is idle.
  const arrivals = [
    [['a', 'b', 'c']],
    [['c', 'b', 'a']],
    [['c'], ['a'], ['b']],
    [['b', 'c'], ['a']],
    [['a'], ['b'], ['c']],
  ];

  test('tasks land in plan order with the same commits, whatever finishes first', async () => {
    const heads = await Promise.all(
      arrivals.map(async (groups) => {
        const { work, train, subjects, files, git } = await yard();
        let atWork = 0;
        const watched: Git = (args, options) => {
          atWork++;
          return git(args, options).finally(() => atWork--);
        };
        const { train: it } = train({ git: watched });
        it.expect(planned('a', 'b', 'c'));
        const landings = [];
        for (const group of groups) {
          landings.push(...group.map((task) => it.land(work(task, changes[task] ?? {}))));
          for (let quiet = 0; quiet < 3; quiet = atWork === 0 ? quiet + 1 : 0) await delay(10);
        }
        await Promise.all(landings);
        expect(subjects(it.head)).toEqual(['Do a', 'Do b', 'Do c']);
        expect(files(it.head)).toEqual({ 'a.txt': 'ONE\ntwo\nTHREE\n', 'new-a.txt': 'a\n' });
        return it.head;
      }),
    );
    expect(new Set(heads).size).toBe(1);
  });

  test('a withdrawn task is not waited for', async () => {
    const { work, train, subjects } = await yard();
    const { train: it } = train();
    it.expect(planned('a', 'b'));
    const landing = it.land(work('b', { 'b.txt': 'b' }));
    it.withdraw('a');
    expect(await landing).toEqual({ outcome: 'landed', commit: it.head });
    expect(subjects(it.head)).toEqual(['Do b']);
  });

  test('work that changes nothing against the head lands without a commit', async () => {
    const { work, train, subjects } = await yard();
    const { train: it, events } = train({ gates: ['true'] });
    it.expect(planned('a', 'same', 'none'));
    const landings = await Promise.all([
      it.land(work('a', { 'a.txt': 'new' })),
      it.land(work('same', { 'a.txt': 'new' })),
      it.land(work('none', {})),
    ]);
    expect(landings).toEqual(Array(3).fill({ outcome: 'landed', commit: it.head }));
    expect(subjects(it.head)).toEqual(['Do a']);
    expect(story(events).filter((line) => line.startsWith('gate on'))).toEqual(['gate on [a same none]']);
  });
});

describe('conflicts', () => {
  test('a conflict is found without a checkout, and the task lands on its second try', async () => {
    const { work, train, files, checkouts, git } = await yard();
    const { train: it, events } = train();
    it.expect(planned('a', 'b', 'c'));
    const first = work('b', { 'a.txt': 'one\nB\nthree\n' });
    const [a, b, c] = await Promise.all([
      it.land(work('a', { 'a.txt': 'one\nA\nthree\n' })),
      it.land(first),
      it.land(work('c', { 'c.txt': 'c' })),
    ]);
    const onto = a.outcome === 'landed' ? a.commit : '';

    expect(b).toMatchObject({ outcome: 'conflict', again: true, conflicts: ['a.txt'], onto });
    const message = b.outcome === 'conflict' ? b.message : '';
    expect(message).toContain('CONFLICT (content): Merge conflict in a.txt');
    expect(message).toContain('+<<<<<<< LANDED\n A\n+=======\n+B\n+>>>>>>> THIS TASK');
    expect(await mergeConflictMessage(git, { onto, commit: first.commit })).toBe(message);
    expect(c).toMatchObject({ outcome: 'landed' });

    const second = await it.land({ ...work('b', { 'a.txt': 'one\nA and B\nthree\n' }, it.head), mayRetry: false });
    expect(second).toEqual({ outcome: 'landed', commit: it.head });
    expect(files(it.head)).toEqual({ 'a.txt': 'one\nA and B\nthree\n', 'c.txt': 'c' });
    expect(checkouts).toEqual([]);
    expect(story(events)).toEqual([
      'a starts',
      'a landed',
      'b starts',
      'b conflict, again',
      'c starts',
      'c landed',
      'b starts',
      'b landed',
    ]);
  });

  test('a conflict on the last try is final, and the others land', async () => {
    const { work, train, subjects } = await yard();
    const { train: it, events } = train();
    it.expect(planned('a', 'b', 'c'));
    const landings = await Promise.all([
      it.land(work('a', { 'a.txt': 'A' })),
      it.land({ ...work('b', { 'a.txt': 'B' }), mayRetry: false }),
      it.land(work('c', { 'c.txt': 'c' })),
    ]);
    expect(landings.map(({ outcome }) => outcome)).toEqual(['landed', 'conflict', 'landed']);
    expect(subjects(it.head)).toEqual(['Do a', 'Do c']);
    expect(events.find(({ type, task }) => type === 'merge_end' && task === 'b')).toEqual({
      type: 'merge_end',
      task: 'b',
      outcome: 'conflict',
      again: false,
      onto: landings[0]?.outcome === 'landed' ? landings[0].commit : '',
      conflicts: ['a.txt'],
      reason: 'it changes the same places as what has landed',
    });
  });

  test('a task that is sent back does not wait for its dependents', async () => {
    const { work, train, subjects } = await yard();
    const { train: it } = train();
    it.expect(planned('a', 'b', ['after-b', 'b'], ['after-that', 'after-b'], 'c'));
    void it.land(work('a', { 'a.txt': 'A' }));
    expect(await it.land(work('b', { 'a.txt': 'B' }))).toMatchObject({ outcome: 'conflict', again: true });
    await it.land(work('c', { 'c.txt': 'c' }));
    await it.land(work('b', { 'a.txt': 'A and B' }, it.head));
    await it.land(work('after-b', { 'b.txt': 'b' }, it.head));
    await it.land(work('after-that', { 'b.txt': 'bb' }, it.head));
    expect(subjects(it.head)).toEqual(['Do a', 'Do c', 'Do b', 'Do after-b', 'Do after-that']);
  });

  test('a conflict with a task that does not land is not a conflict', async () => {
    const { work, train, files } = await yard();
    const { train: it } = train({ gates: ['! grep -q BAD a.txt'] });
    it.expect(planned('bad', 'good'));
    const landings = await Promise.all([
      it.land(work('bad', { 'a.txt': 'BAD' })),
      it.land(work('good', { 'a.txt': 'GOOD' })),
    ]);
    expect(landings.map(({ outcome }) => outcome)).toEqual(['gate_failed', 'landed']);
    expect(files(it.head)).toEqual({ 'a.txt': 'GOOD' });
  });

  test('a description of many large conflicts is bounded', async () => {
    const names = Array.from({ length: 50 }, (_, at) => `file-${at}.txt`);
    const all = (text: string) => Object.fromEntries(names.map((name) => [name, `${text}\n`.repeat(2_000)]));
    const { work, train } = await yard(all('base'));
    const { train: it } = train();
    it.expect(planned('a', 'b'));
    void it.land(work('a', all('this is one side')));
    const landing = await it.land(work('b', all('and this is the other')));
    expect(landing).toMatchObject({ outcome: 'conflict', conflicts: names.toSorted() });
    const message = landing.outcome === 'conflict' ? landing.message : '';
    expect(message.length).toBeLessThan(20_000);
    expect(message).toContain('30 more files conflict');
  });

  test('a complete conflict description names no further files', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `file-${at}.txt`);
    const all = (text: string) => Object.fromEntries(names.map((name) => [name, text]));
    const { work, train } = await yard(all('base'));
    const { train: it } = train();
    it.expect(planned('a', 'b'));
    void it.land(work('a', all('one')));
    const landing = await it.land(work('b', all('two')));
    const message = landing.outcome === 'conflict' ? landing.message : '';
    expect(message).toContain('file-19.txt');
    expect(message).not.toContain('more files conflict');
  });

  test('an unrelated history is a conflict of its task only', async () => {
    const { work, train, store } = await yard();
    const tree = run(['-C', store, 'rev-parse', `${work('x', { 'a.txt': 'other' }).commit}^{tree}`]).trim();
    const orphan = run(['-C', store, 'commit-tree', '-m', 'orphan', tree]).trim();
    const { train: it } = train();
    it.expect(planned('a', 'b'));
    const a = it.land({ ...work('a', {}), commit: orphan, mayRetry: false });
    const b = it.land(work('b', { 'b.txt': 'b' }));
    expect(await a).toMatchObject({ outcome: 'conflict', conflicts: ['a.txt'] });
    expect(await b).toMatchObject({ outcome: 'landed' });
  });
});

describe('content of every kind', () => {
  test('odd names, renames, deletions, modes, links and binaries survive a merge', async () => {
    const text = Array.from({ length: 30 }, (_, at) => `line ${at}`).join('\n');
    const { work, train, files } = await yard({ 'old name.txt': text, 'gone.txt': 'gone', 'tool.sh': 'echo' });
    const { train: it } = train();
    it.expect(planned('rename', 'edit', 'odd', 'mode'));
    const bytes = Buffer.from([0, 255, 254, 10, 13, 0, 200]);
    await Promise.all([
      it.land(work('rename', { 'old name.txt': undefined, 'new\nname ü.txt': text, 'gone.txt': undefined })),
      it.land(work('edit', { 'old name.txt': text.replace('line 7', 'LINE SEVEN') })),
      it.land(work('odd', { 'ein "ß" \\ tab\t.bin': bytes, '日本/語.txt': 'x' })),
      it.land(
        work('mode', { 'tool.sh': { mode: '100755', data: 'echo' }, link: { mode: '120000', data: '日本/語.txt' } }),
      ),
    ]);
    expect(files(it.head)).toEqual({
      'new\nname ü.txt': text.replace('line 7', 'LINE SEVEN'),
      'ein "ß" \\ tab\t.bin': bytes.toString(),
      '日本/語.txt': 'x',
      'tool.sh': '100755 echo',
      link: '120000 日本/語.txt',
    });
  });

  test('conflicting paths are reported unchanged, whatever they hold', async () => {
    const odd = 'two\nlines and ü.txt';
    const { work, train } = await yard({ [odd]: 'base', bin: Buffer.from([0, 1, 2]), gone: 'x' });
    const { train: it } = train();
    it.expect(planned('a', 'b'));
    void it.land(work('a', { [odd]: 'a', bin: Buffer.from([0, 1, 3]), gone: undefined }));
    const landing = await it.land(work('b', { [odd]: 'b', bin: Buffer.from([0, 1, 4]), gone: 'y' }));
    expect(landing).toMatchObject({ outcome: 'conflict', conflicts: ['bin', 'gone', odd] });
  });
});

describe('cost', () => {
  test('a hundred tasks take at most three git processes each', async () => {
    const { works, train, git, subjects } = await yard();
    let processes = 0;
    const counting: Git = (args, options) => {
      processes++;
      return git(args, options);
    };
    const { train: it } = train({ git: counting });
    const tasks = Array.from({ length: 100 }, (_, at) => `t${at}`);
    it.expect(planned(...tasks));
    const arrivals = works(Object.fromEntries(tasks.map((task) => [task, { [`${task}.txt`]: task }])));
    await Promise.all(arrivals.map((arrival) => it.land(arrival)));
    expect(subjects(it.head)).toEqual(tasks.map((task) => `Do ${task}`));
    expect(processes).toBeLessThanOrEqual(300);
  });
});

describe('failure', () => {
  test('a missing commit ends the train for all its tasks', async () => {
    const { work, train, ref } = await yard();
    const { train: it } = train();
    it.expect(planned('a', 'b', 'c'));
    const b = it.land(work('b', { 'b.txt': 'b' }));
    const a = it.land({ ...work('a', {}), commit: '1'.repeat(40) });
    await expect(a).rejects.toThrow('there is no such commit');
    await expect(b).rejects.toBeInstanceOf(DroverError);
    await expect(it.land(work('c', {}))).rejects.toBeInstanceOf(DroverError);
    expect(ref()).toBe('');
  });

  test('an unexpected task is not merged', async () => {
    const { work, train } = await yard();
    expect(() => train().train.land(work('a', {}))).toThrow('does not expect a');
  });
});
