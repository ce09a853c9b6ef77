// Every fault of the rehearsal server, for every provider it applies to. The table names drover's reaction to each
// fault; a fault without a row does not compile.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Failure } from '@drover/protocol/failures';
import { wireApis, type Api } from '@drover/core/model/catalog';
import type { Message } from '@drover/protocol/messages';
import type { StreamTimeouts } from '@drover/core/model/provider';
import { factsOfFault, FAULTS, type Fault, type FaultName } from '@drover/rehearsal/faults/fault';
import type { Answer } from '@drover/rehearsal/script';
import { describe, expect, test } from 'vitest';
import { agentOn, APIS, type Executed, patient } from '../support/agent.ts';

type Expected =
  /** No effect: the same messages as without the fault. */
  | 'the same'
  /** Retried until the messages are the same; `discarded` if partial text had been shown. */
  | { readonly retried: Failure['kind']; readonly discarded?: true }
  /** The call is not run, and its result names the reason; the turn continues. */
  | { readonly notRun: RegExp }
  /** A different but correct answer: the turn's text is checked. */
  | { readonly says: RegExp }
  | { readonly thinks: string }
  | { readonly ends: Failure['kind'] };

type Row = { readonly expected: Expected; readonly fault?: Partial<Fault>; readonly answer?: Answer };

const CALL: Answer = { text: 'Let me look.', calls: [{ name: 'read', args: { path: 'a.txt' } }] };
const NO_ARGUMENTS: Answer = { text: 'Let me look.', calls: [{ name: 'list', args: {} }] };
const TWO_CALLS: Answer = {
  calls: [
    { name: 'read', args: { path: 'a.txt' } },
    { name: 'read', args: { path: 'b.txt' } },
  ],
};
const THINKING: Answer = {
  thinking: 'Where is it?',
  text: 'Let me look.',
  calls: [{ name: 'read', args: { path: 'a.txt' } }],
};

const same: Row = { expected: 'the same' };
const retried = (kind: Failure['kind'], fault?: Partial<Fault>): Row => ({
  expected: { retried: kind },
  ...(fault && { fault }),
});
const discarded = (kind: Failure['kind'], fault: Partial<Fault> = { after: 2 } as Partial<Fault>): Row => ({
  expected: { retried: kind, discarded: true },
  fault,
});
const notRun = (why: RegExp): Row => ({ expected: { notRun: why } });

const rows: Record<FaultName, readonly Row[]> = {
  status: [retried('provider.unavailable', { status: 529 } as Partial<Fault>)], // the other faults: see refusals.test.ts
  redirect: [
    {
      expected: { ends: 'provider.rejected' },
      fault: { location: 'http://elsewhere.invalid/v1/messages' } as Partial<Fault>,
    },
  ],
  'ok-error': [retried('provider.unavailable')],
  'no-headers': [retried('provider.stalled')],
  'no-first-byte': [retried('provider.stalled')],
  drop: [retried('provider.unavailable')],

  'whole-json': [same],
  'error-event': [
    retried('provider.unavailable', { after: 'nothing' } as Partial<Fault>),
    discarded('provider.unavailable'),
  ],
  failed: [retried('provider.unavailable', { after: 'nothing' } as Partial<Fault>), discarded('provider.unavailable')],
  cut: [retried('provider.garbled', { after: 0 } as Partial<Fault>), discarded('provider.garbled')],
  reset: [discarded('provider.unavailable')],
  silence: [discarded('provider.stalled')],
  'pings-only': [discarded('provider.stalled', { after: 2, everyMs: 20 } as Partial<Fault>)],
  'comments-only': [discarded('provider.stalled', { after: 2, everyMs: 20 } as Partial<Fault>)],
  'huge-event': [discarded('provider.garbled')],
  'endless-line': [discarded('provider.garbled')],
  'no-end': [same],
  'not-json': [same],
  'unknown-events': [same],
  'after-end': [same],
  'second-start': [same],
  'index-gaps': [same],
  'interleaved-blocks': [same, { ...same, answer: TWO_CALLS }],
  'unknown-block': [same],
  'empty-output': [same],

  'args-empty': [{ ...same, answer: NO_ARGUMENTS }, notRun(/path/)],
  'args-null': [{ ...same, answer: NO_ARGUMENTS }, notRun(/path/)],
  'args-object': [same],
  'args-double': [same],
  'args-garbage': [notRun(/Not run: .*JSON/)],
  'args-glued': [notRun(/Not run: /)],
  'args-nul': [notRun(/Not run: .*NUL/i)],
  'args-not-json': [notRun(/Not run: .*JSON/)],
  'name-case': [{ expected: { says: /^Let me look\.Done\.$/ } }],
  'name-prefix': [{ expected: { says: /^Let me look\.Done\.$/ } }],
  'name-tail': [{ expected: { says: /^Let me look\.Done\.$/ } }],
  'name-unknown': [notRun(/There is no tool .*The tools are: /)],
  'same-ids': [{ ...same, answer: TWO_CALLS }],
  'reused-ids': [same],
  'odd-ids': [same],
  empty: [{ expected: { says: /^Done\.$/ } }],
  'thinking-only': [{ expected: { says: /^Done\.$/ } }],
  pause: [{ expected: { says: /Done\.$/ }, answer: { text: 'Let me look.' } }],
  refusal: [{ expected: { ends: 'answer.refused' } }],
  filter: [{ expected: { ends: 'answer.refused' } }],
  'context-window': [{ expected: { ends: 'context.overflow' } }],
  length: [{ expected: { ends: 'limit.reached' }, answer: { text: 'It all began with' } }],
  'length-in-args': [notRun(/cut off/)],

  'chat-no-index': [same, { ...same, answer: TWO_CALLS }],
  'chat-no-id': [same, { ...same, answer: TWO_CALLS }],
  'chat-id-changes': [same, { ...same, answer: TWO_CALLS }],
  'chat-id-repeated': [same, { ...same, answer: TWO_CALLS }],
  'chat-name-late': [same, { ...same, answer: TWO_CALLS }],
  'chat-nulls': [same, { ...same, answer: TWO_CALLS }],
  'chat-whole-call': [same, { ...same, answer: TWO_CALLS }],
  'chat-finish-stop': [same],
  'chat-no-finish': [same],
  'chat-usage-null': [same],
  'chat-usage-extra': [same],
  'chat-usage-absent': [same],
  'chat-content-array': [same],
  'chat-reasoning': [{ expected: { thinks: 'Where is it?' }, answer: THINKING }],
  'chat-reasoning-content': [{ expected: { thinks: 'Where is it?' }, answer: THINKING }],
  'chat-think-tags': [{ expected: { thinks: 'Where is it?' }, answer: THINKING }],
  'chat-no-role': [same],
  'chat-extra-choices': [same],
  'chat-null-delta': [same],

  'one-byte': [same],
  splits: [same],
  crlf: [same],
  cr: [same],
  bom: [same],
  'data-lines': [same],
  comments: [same],
  'no-blank-line': [same],
  gzip: [same],
};

// Only the timer that must notice the fault is short, and only for the request with the fault: on a busy machine every
// other wait may take long.
const IMPATIENT: Partial<Record<FaultName, Partial<StreamTimeouts>>> = {
  'no-headers': { headersMs: 400 },
  'no-first-byte': { firstByteMs: 400 },
  silence: { silenceMs: 400 },
  'pings-only': { progressMs: 800 },
  'comments-only': { progressMs: 800 },
};

async function live(
  api: Api,
  answer: Answer,
  fault: Fault | undefined,
): Promise<Executed & { readonly rejections: number }> {
  const impatient = fault && IMPATIENT[fault.fault];
  const { run, cwd, server } = await agentOn(
    { answers: [answer], otherwise: { text: 'Done.' }, ...(fault && { faults: [{ at: 1, ...fault }] }) },
    { api, ...(impatient && { firstTimeouts: { ...patient, ...impatient } }) },
  );
  await writeFile(join(cwd, 'a.txt'), 'alpha');
  await writeFile(join(cwd, 'b.txt'), 'beta');
  return { ...(await run('go')), rejections: server.rejections };
}

/** Text, thinking and calls of all messages; ids, usage and sealed payloads differ by provider. */
function gist(messages: readonly Message[]): unknown[] {
  return messages.map((message) => {
    switch (message.role) {
      case 'user':
        return message.content;
      case 'assistant':
        return {
          stop: message.stop,
          content: message.content.map((part) =>
            part.type === 'tool_call' ? { name: part.name, args: part.args } : part,
          ),
        };
      case 'tool':
        return message.results.map(({ name, output, isError }) => ({ name, output, isError }));
    }
  });
}

function textOf(messages: readonly Message[]): string {
  return messages
    .flatMap((message) =>
      message.role === 'assistant' ? message.content.map((part) => (part.type === 'text' ? part.text : '')) : [],
    )
    .join('');
}

test('the suite covers every provider', () => {
  expect(Object.keys(wireApis).sort()).toEqual([...APIS].sort());
});

describe.each(APIS)('%s', (api) => {
  const cases = (Object.keys(FAULTS) as FaultName[])
    .filter((name) => factsOfFault(name).apis.includes(api))
    .flatMap((name) =>
      rows[name].map((row, at) => ({ name, row, title: `${factsOfFault(name).about}${at > 0 ? ` (${at + 1})` : ''}` })),
    );

  test.each(cases)('$title', async ({ name, row }) => {
    const answer = row.answer ?? CALL;
    const { events, result, rejections } = await live(api, answer, { fault: name, ...row.fault } as Fault);
    const { expected } = row;
    expect(rejections).toBe(0);
    if (typeof expected === 'object' && 'ends' in expected) {
      expect(result.outcome).toMatchObject({ failure: { kind: expected.ends } });
      return;
    }
    expect(result.outcome).toEqual({ status: 'done' });
    if (expected === 'the same' || 'retried' in expected) {
      const plain = await live(api, answer, undefined);
      expect(gist(result.messages)).toEqual(gist(plain.result.messages));
      const retries = events.filter((event) => event.type === 'retry').map(({ failure }) => failure.kind);
      expect(retries).toEqual(expected === 'the same' ? [] : [expected.retried]);
      const takenBack = events.filter(({ type }) => type === 'attempt_discarded').length;
      expect(takenBack).toBe(expected !== 'the same' && expected.discarded === true ? 1 : 0);
      const starts = events.filter(({ type }) => type === 'tool_execution_start').length;
      expect(starts).toBe(answer.calls?.length ?? 0);
    } else if ('notRun' in expected) {
      expect(events.filter(({ type }) => type === 'tool_execution_start')).toEqual([]);
      const results = result.messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
      expect(results.map(({ isError }) => isError)).toEqual([true]);
      expect(results[0]?.output).toMatch(expected.notRun);
    } else if ('thinks' in expected) {
      expect(gist(result.messages)[1]).toMatchObject({
        content: [
          { type: 'thinking', text: expected.thinks },
          { type: 'text', text: 'Let me look.' },
          { name: 'read' },
        ],
      });
    } else {
      expect(textOf(result.messages)).toMatch(expected.says);
    }
  });
});
