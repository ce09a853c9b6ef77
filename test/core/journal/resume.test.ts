// Resuming sessions: after an ending, a failure, or a crash at any record.

import { appendFile, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionOptions } from '@drover/core/session/session-options';
import { readJournalContents } from '@drover/core/journal/file/format';
import { Journal, type JournalFile } from '@drover/core/journal/file/journal';
import { Recorder } from '@drover/core/journal/recorder';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import type { Message } from '@drover/protocol/messages';
import { defineTool, type Tool } from '@drover/core/tools/tool';
import type { Script } from '@drover/rehearsal/script';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { agentOn, temporaryFolder, type Rehearsed, type Settings } from '../../support/agent.ts';
import { proves } from '../../support/proves.ts';
import { story } from '../../support/story.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };

type Life = Rehearsed & { readonly die: () => Promise<void> };

/** One process's part of a session; the next one reads what it wrote. */
async function begin(home: string, script: Script, settings: Settings = {}): Promise<Life> {
  const { store, past, close } = await openSessionJournal(home, 's1', HOOKS);
  onTestFinished(close);
  const options: Partial<SessionOptions> = { id: 's1', store, ...(past && { past }) };
  return { ...(await agentOn(script, { ...settings, ...options })), die: close };
}

/** A tool whose executions can be counted. */
const ledger = (path: string, repeatable = false): Tool =>
  defineTool({
    name: 'ledger',
    description: 'Writes a line.',
    input: z.object({ line: z.string() }),
    access: 'none',
    subject: ({ line }) => line,
    ...(repeatable && { repeatable: true as const }),
    async run({ line }) {
      if (line === 'slow') await sleep(60);
      await appendFile(path, `${line}\n`);
      return `wrote ${line}`;
    },
  });
const writes = (...lines: string[]) => ({ calls: lines.map((line) => ({ name: 'ledger', args: { line } })) });
const roles = (messages: readonly Message[]) => messages.map(({ role }) => role);

test('a second process resumes the same conversation', async () => {
  const home = await temporaryFolder();
  const first = await begin(home, { answers: [{ thinking: 'hm', text: 'One.' }] });
  const one = await first.run('first');
  await first.die();
  const second = await begin(home, { answers: [{ text: 'Two.' }] });
  const two = await second.run('second');
  expect(roles(second.session.conversation.messages)).toEqual(['user', 'assistant', 'user', 'assistant']);
  expect(second.session.conversation.messages.slice(0, 2)).toEqual(first.session.conversation.messages);
  expect(two.events[0]).toMatchObject({ seq: (one.events.at(-1)?.seq ?? 0) + 1, turn: 2, type: 'message_start' });
  expect(second.server.rejections).toBe(0);
});

test('no event is told before it is durable', async () => {
  const home = await temporaryFolder();
  const { session, die } = await begin(
    home,
    { answers: [writes('a'), { text: 'ok' }] },
    { tools: [ledger(join(home, 'l'))] },
  );
  const execution = session.execute({ content: 'go' }, new AbortController().signal);
  for await (const event of execution) {
    if (event.type.endsWith('_delta')) continue;
    const { records } = readJournalContents(await readFile(journalPath(home, 's1')));
    expect(records.map(({ seq }) => seq)).toContain(event.seq);
  }
  await die();
});

test('messages, intents, results and endings are synced before they are told', async () => {
  const path = join(await temporaryFolder(), 'journal.jsonl');
  const disk = { written: 0, synced: 0 };
  const openFile = async (name: string): Promise<JournalFile> => {
    const file = await open(name, 'w+');
    return {
      async write(bytes: Buffer, at: number, length: number, position: number) {
        disk.written = position + length;
        return file.write(bytes, at, length, position);
      },
      async datasync() {
        await file.datasync();
        disk.synced = disk.written;
      },
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
    } as JournalFile;
  };
  const { journal } = await Journal.open({ path, session: 's', ...HOOKS, openFile });
  const store = new Recorder({ journal, diagnose: () => undefined });
  const { session } = await agentOn(
    { answers: [writes('a', 'slow'), { text: 'ok' }] },
    { id: 's', store, tools: [ledger(`${path}.ledger`)] },
  );
  const told: string[] = [];
  for await (const { type, seq } of session.execute({ content: 'go' }, new AbortController().signal)) {
    if (!/^(message_end|tool_execution_(start|end)|done|session_end)$/.test(type)) continue;
    told.push(type);
    const safe = (await readFile(path)).subarray(0, disk.synced);
    expect(readJournalContents(safe).records.map((record) => record['seq'])).toContain(seq);
  }
  await journal.close();
  expect(new Set(told)).toEqual(
    new Set(['message_end', 'tool_execution_start', 'tool_execution_end', 'done', 'session_end']),
  );
});

test('the pending part of a turn stays in place through repeated failures', async () => {
  const home = await temporaryFolder();
  const tools = [ledger(join(home, 'l'))];
  const down = { fault: { fault: 'status' as const, status: 401 } };
  const first = await begin(home, { answers: [writes('p1')], otherwise: down }, { tools });
  expect((await first.run('u1')).result.outcome.status).toBe('incomplete');
  expect((await first.run('u2')).result.outcome.status).toBe('error');
  await first.die();
  const second = await begin(home, { answers: [writes('p2')], otherwise: down }, { tools, api: 'openai' });
  expect((await second.run('u3')).result.outcome.status).toBe('incomplete');
  await second.die();
  const third = await begin(home, { answers: [{ text: 'At last.' }] }, { tools, api: 'openai-chat' });
  expect((await third.run('u4')).result.outcome.status).toBe('done');
  const texts = third.session.conversation.messages.map((message) => {
    if (message.role === 'user') return message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
    return message.role === 'tool' ? message.results.map(({ output }) => output).join() : 'answer';
  });
  expect(texts).toEqual(['u1', 'answer', 'wrote p1', 'u2', 'u3', 'answer', 'wrote p2', 'u4', 'answer']);
  expect([first, second, third].map(({ server }) => server.rejections)).toEqual([0, 0, 0]);
});

test('an answer that was shown but not stored is in no later history', async () => {
  const home = await temporaryFolder();
  const first = await begin(home, {
    answers: [{ text: 'I will not.', stop: 'refusal' }, { text: '' }, { text: 'Here.' }],
  });
  await first.run('one');
  await first.run('two');
  await first.die();
  const second = await begin(home, { answers: [{ text: 'ok' }] });
  expect(second.session.conversation.messages).toEqual(first.session.conversation.messages);
  expect(roles(second.session.conversation.messages)).toEqual(['user', 'user', 'assistant']);
});

test('a turn that failed can be resumed without a new message', async () => {
  const home = await temporaryFolder();
  const tools = [ledger(join(home, 'l'))];
  const first = await begin(
    home,
    { answers: [writes('a')], otherwise: { fault: { fault: 'status', status: 401 } } },
    { tools },
  );
  await first.run('go');
  await first.die();
  const second = await begin(home, { answers: [{ text: 'Done now.' }] }, { tools });
  const { result } = await second.run({ resume: true });
  expect(result.outcome).toEqual({ status: 'done' });
  expect(roles(second.session.conversation.messages)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  await expect(second.run({ resume: true })).rejects.toThrow('nothing to resume');
});

describe('killed at every record', () => {
  const SCRIPT: Script = { order: 'conversation', answers: [writes('a', 'b'), writes('c'), { text: 'Done.' }] };

  async function wholeJournal(home: string, repeatable: boolean): Promise<readonly string[]> {
    const life = await begin(home, SCRIPT, { tools: [ledger(join(home, 'ledger'), repeatable)] });
    await life.run('go');
    await life.die();
    return (await readFile(journalPath(home, 's1'), 'utf8')).trimEnd().split('\n');
  }

  proves(
    'journal.kill-anywhere',
    'resume loses nothing told, repeats nothing, and no request is refused',
    async () => {
      const home = await temporaryFolder();
      const lines = await wholeJournal(home, false);
      for (let kept = 2; kept <= lines.length; kept++) {
        const place = await temporaryFolder();
        const done = lines.slice(0, kept).filter((line) => line.includes('"type":"tool_execution_end"')).length;
        await begin(place, SCRIPT).then((life) => life.die());
        await writeFile(journalPath(place, 's1'), `${lines.slice(0, kept).join('\n')}\n`);
        const before = readJournalContents(await readFile(journalPath(place, 's1'))).records;

        const life = await begin(place, SCRIPT, { tools: [ledger(join(place, 'ledger'))] });
        const canGoOn = before.some(
          ({ type, message }) => type === 'message_end' && JSON.stringify(message).includes('"user"'),
        );
        const isOver = before.some(({ type }) => type === 'done');
        const { result } = isOver ? { result: undefined } : await life.run(canGoOn ? { resume: true } : 'go');
        await life.die();

        const after = readJournalContents(await readFile(journalPath(place, 's1'))).records;
        expect(after.slice(0, before.length)).toEqual(before);
        expect(life.server.rejections).toBe(0);
        if (result !== undefined) expect(result.outcome).toEqual({ status: 'done' });
        const answered = before.filter(
          ({ type, message }) => type === 'message_end' && JSON.stringify(message).includes('"assistant"'),
        ).length;
        expect(life.server.requests.length).toBe(3 - answered);
        // Calls that finished before the crash are not run again; a call that was begun is uncertain and is not run
        // again either.
        const begun = before.filter(({ type }) => type === 'tool_execution_start').length;
        const lines2 = await readFile(join(place, 'ledger'), 'utf8').catch(() => '');
        expect(lines2.split('\n').filter(Boolean).length).toBe(3 - begun);
        expect(begun).toBeGreaterThanOrEqual(done);
      }
    },
    60_000,
  );

  test('a started call is uncertain, and the model is told so', async () => {
    const home = await temporaryFolder();
    const lines = await wholeJournal(home, false);
    const at = lines.findIndex((line) => line.includes('"type":"tool_execution_start"')) + 1;
    await writeFile(journalPath(home, 's1'), `${lines.slice(0, at).join('\n')}\n`);
    const life = await begin(home, SCRIPT, { tools: [ledger(join(home, 'ledger2'))] });
    const { events } = await life.run({ resume: true });
    expect(story(events).slice(0, 3)).toEqual([
      '0 fails: UNCERTAIN: drover was stopped while this ran, so it may or may not have taken e…',
      '1 starts ledger {"line":"b"}',
      '1 ends: wrote b',
    ]);
    expect(events[0]).toMatchObject({ callId: JSON.parse(lines[at - 1] ?? '{}').callId });
    expect(life.server.requests[0]?.rawBody).toContain('UNCERTAIN');
    await life.die();
  });

  test('a call of an idempotent tool is run again', async () => {
    const home = await temporaryFolder();
    const lines = await wholeJournal(home, true);
    const at = lines.findIndex((line) => line.includes('"type":"tool_execution_start"')) + 1;
    await writeFile(journalPath(home, 's1'), `${lines.slice(0, at).join('\n')}\n`);
    const life = await begin(home, SCRIPT, { tools: [ledger(join(home, 'ledger2'), true)] });
    const { events } = await life.run({ resume: true });
    expect(story(events)).toContain('0 ends: wrote a');
    await life.die();
  });

  test('a new message instead of resume closes open calls and follows them', async () => {
    const home = await temporaryFolder();
    const lines = await wholeJournal(home, false);
    const at = lines.findIndex((line) => line.includes('"type":"tool_execution_start"')) + 1;
    await writeFile(journalPath(home, 's1'), `${lines.slice(0, at).join('\n')}\n`);
    const life = await begin(
      home,
      { answers: [{ text: 'Never mind, then.' }] },
      { tools: [ledger(join(home, 'ledger2'))] },
    );
    const { events, result } = await life.run('something else');
    expect(story(events)).toEqual([
      'results ledger failed, ledger failed',
      'incomplete: aborted',
      'user says something else',
      'model says Never mind, then. (stop)',
      'done',
      'session ends: done',
    ]);
    expect(result.messages).toHaveLength(2);
    expect(life.server.rejections).toBe(0);
    await life.die();
  });
});

test('a session that waits for a remote tool still waits in the next process', async () => {
  const home = await temporaryFolder();
  const { execute: _, ...local } = ledger('');
  const declared: Tool = { ...local, remote: true };
  const script: Script = { order: 'conversation', answers: [writes('x', 'y'), { text: 'ok' }] };
  const first = await begin(home, script, { tools: [declared] });
  const { result } = await first.run('go');
  await first.die();
  const second = await begin(home, script, { tools: [declared] });
  expect(second.session.pending).toEqual(result.pending);
  const done = await second.run({
    results: result.pending.map(({ callId }, n) => ({ callId, output: `remote ${n}` })),
  });
  expect(done.result.outcome).toEqual({ status: 'done' });
  await second.die();
});

test('the calibration of the estimate survives a resume with the same model only', async () => {
  const home = await temporaryFolder();
  const usage = { input: 9_000 };
  const first = await begin(home, { answers: [{ text: 'One.', usage }] });
  await first.run('first');
  await first.die();
  const { ratio, reported } = first.session.tokens;
  const second = await begin(home, { answers: [{ text: 'Two.' }] });
  expect(second.session.tokens).toMatchObject({ ratio, reported });
  await second.die();
  const third = await begin(home, { answers: [{ text: 'Three.' }] }, { model: 'another' });
  expect([third.session.tokens.ratio, third.session.tokens.reported]).toEqual([undefined, undefined]);
  await third.die();
});

test.each([
  ['by a summary', { steps: 12, last: 400, contextTokens: 8_000 }, 'Much was written.'],
  ['by shorter results', { steps: 6, last: 3_000, contextTokens: 26_000 }, 'left out to save room'],
])('compaction %s is part of the history', async (_, { steps, last, contextTokens }, mark) => {
  const home = await temporaryFolder();
  const summary = { when: { system: 'condense the history' }, text: 'Much was written.' };
  const step = { calls: [{ name: 'shell', args: { command: `seq 1 ${last}` } }] };
  const many = Array.from({ length: steps }, () => step);
  const first = await begin(home, { answers: [summary, ...many, { text: 'ok' }] }, { contextTokens });
  await first.run('the task');
  await first.die();
  const second = await begin(home, { answers: [{ text: 'ok' }] });
  expect(second.session.conversation.messages).toEqual(first.session.conversation.messages);
  expect(JSON.stringify(second.session.conversation.messages)).toContain(mark);
  await second.die();
});
