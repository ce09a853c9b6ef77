// Steering: messages to an agent while its turn runs, in the conversation, the journal and a resumed session.

import { foldSessionHistory } from '@drover/core/journal/history';
import type { Steered } from '@drover/core/session/inbox';
import type { JsonObject } from '@drover/protocol/json';
import { expect, test } from 'vitest';
import { agentOn, type Rehearsed } from '../../support/agent.ts';

const look = { calls: [{ name: 'list', args: { path: '.' } }] };

/** A script with answers in order; a function among them runs when its request arrives. */
function inOrder(...steps: readonly (Scripted | (() => Scripted))[]) {
  const left = [...steps];
  return {
    answers: [
      () => {
        const next = left.shift() ?? { text: 'nothing is left' };
        return typeof next === 'function' ? next() : next;
      },
    ],
  };
}

type Scripted = { readonly text: string } | typeof look;

/** The messages of the last request, without system prompt and tools. */
function asked({ server }: Rehearsed): readonly string[] {
  const { messages } = (server.requests.at(-1)?.body ?? {}) as { messages: { role: string; content: unknown }[] };
  return messages.map(({ role, content }) => {
    if (typeof content === 'string') return `${role}: ${content}`;
    return `${role}: ${(content as { type: string; text?: string }[]).map((part) => part.text ?? part.type).join(' | ')}`;
  });
}

test('a steering message joins the conversation after the results of the step', async () => {
  let steered: Steered | undefined;
  const step = () => {
    steered = agent.session.steer('use tabs');
    return look;
  };
  const agent = await agentOn(inOrder(step, { text: 'Tabs it is.' }));
  const { events, result } = await agent.run('format it');
  expect(result.outcome).toEqual({ status: 'done' });
  expect(asked(agent)).toEqual(['user: format it', 'assistant: tool_use', 'user: tool_result | use tabs']);
  expect([steered?.isDelivered, steered?.takeBack()]).toEqual([true, false]);
  const users = events.flatMap((event) =>
    event.type === 'message_end' && event.message.role === 'user' ? [[event.turn, event.step]] : [],
  );
  expect(users).toEqual([
    [1, 0],
    [1, 1],
  ]);
});

test('a steering message that comes with the last answer continues the turn', async () => {
  const last = () => {
    agent.session.steer('and the tests?');
    return { text: 'Done.' };
  };
  const agent = await agentOn(inOrder(last, { text: 'Those too.' }));
  await agent.run('fix it');
  expect(asked(agent)).toEqual(['user: fix it', 'assistant: Done.', 'user: and the tests?']);
  expect(agent.session.conversation.messages).toHaveLength(4);
});

test('a steering message that is taken back never reaches the model', async () => {
  const step = () => {
    const steered = agent.session.steer('no, stop');
    expect([steered?.takeBack(), steered?.takeBack(), steered?.isDelivered]).toEqual([true, false, false]);
    return look;
  };
  const agent = await agentOn(inOrder(step, { text: 'Done.' }));
  await agent.run('go');
  expect(asked(agent)).toEqual(['user: go', 'assistant: tool_use', 'user: tool_result']);
});

test('a session without a turn takes no steering message', async () => {
  const agent = await agentOn(inOrder({ text: 'Done.' }));
  expect(agent.session.steer('too early')).toBeUndefined();
  await agent.run('go');
  expect(agent.session.steer('too late')).toBeUndefined();
});

test('history keeps the steps and answers of a turn that was steered', async () => {
  const step = () => {
    agent.session.steer('use tabs');
    return look;
  };
  const agent = await agentOn(inOrder(step, look, { text: 'Done.' }));
  const { events } = await agent.run('format it');
  const end = events.findIndex((event) => event.type === 'done');
  const past = foldSessionHistory(events.slice(0, end) as unknown as JsonObject[]);
  expect(past).toMatchObject({ turn: 1, steps: 3, answers: 3, ending: undefined });
  expect(past?.messages.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'user',
    'assistant',
    'tool',
    'assistant',
  ]);
});
