// Gets one usable answer for a turn, and compacts the conversation when it is too long.
//
// Guarantees
//   1. An unusable answer (empty, or a call written as text) is discarded and requested again.
//   2. The reminder for such a retry goes into that one request, never into the history.

import { promptTokensMax, promptUtf8Bytes } from '../conversation/prompt-bound.ts';
import { DroverError } from '../errors.ts';
import type { AssistantMessage, Message, Usage } from '@drover/protocol/messages';
import { buildModelRequest, isBlankForModel } from '../model/request.ts';
import type { Answer } from './ask.ts';
import { fallBackAgent } from './fall-back.ts';
import { agentAnswerTokensMax, compactAgent, isPromptOverflow, isAgentPromptTooLong } from './compact.ts';
import { textFormCall } from './text-form/text-calls.ts';
import {
  addTurnAnswer,
  requestPartsOfTurn,
  ATTEMPTS_MAX,
  emitTurnEvent,
  endOfTurnAnswer,
  textOfTurnAnswer,
  type Agent,
  type Turn,
} from './turn.ts';

const PAUSES_MAX = 8;
const NUDGE = 'Your last answer was empty. Go on with the work, or say that it is done and what came of it.';
const WRITTEN_CALL =
  'Your last answer held a tool call written as text, which does nothing, so it was discarded. Call the tool through the interface for tool calls.';

/** Returns a usable answer, or undefined if the caller must ask the model again. */
export async function takeAnswer(agent: Agent, turn: Turn, signal: AbortSignal): Promise<AssistantMessage | undefined> {
  const answer = await askAgentCompacting(agent, turn, signal);
  const { message, notes } = answer;
  turn.outputTokens += message.usage.output;
  if (notes.ignored > 0) {
    emitTurnEvent(agent, turn, {
      type: 'warning',
      message: `${notes.ignored === 1 ? 'one event' : `${notes.ignored} events`} of the answer not understood, and left out`,
    });
  }
  if (message.stop === 'refusal') {
    // Shown, but not added to the history: a conversation that contains a refusal is refused again.
    emitTurnEvent(agent, turn, { ...endOfTurnAnswer(answer), kept: false });
    // The text before the refusal was shown and paid for, so it counts as an answer.
    if (message.content.length > 0) turn.answers += 1;
    const explanation = notes.explanation ?? textOfTurnAnswer(message) ?? 'no reason was given';
    throw new DroverError({ kind: 'answer.refused', message: explanation });
  }
  if (discardCallWrittenAsText(agent, turn, answer)) return undefined;
  if (isAnswerEmpty(message)) {
    emitTurnEvent(agent, turn, { ...endOfTurnAnswer(answer), kept: false });
    if (turn.isNudged) throw new DroverError({ kind: 'answer.empty' });
    turn.isNudged = true;
    turn.reminder = NUDGE;
    return undefined;
  }
  if (message.stop === 'pause' && (turn.pauses += 1) > PAUSES_MAX) {
    throw new DroverError({ kind: 'answer.paused', limit: PAUSES_MAX });
  }
  turn.isNudged = false;
  turn.reminder = undefined;
  turn.compactionsInARow = 0;
  turn.patience.left = ATTEMPTS_MAX;
  turn.answers += 1;
  addTurnAnswer(agent, turn, answer);
  return message;
}

/** Returns true for a call written as text, after discarding the answer and setting a reminder. */
function discardCallWrittenAsText(agent: Agent, turn: Turn, { message, notes }: Answer): boolean {
  const limit = agent.limits.textCallRetriesMax;
  if (limit === 0 || message.content.some(({ type }) => type === 'tool_call')) return false;
  const text = message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
  const names = agent.toolset.definitions.map(({ name }) => name);
  const found = textFormCall(text, names, notes.announcesCalls === true ? 'tool_calls' : message.stop);
  if (found === undefined) return false;
  emitTurnEvent(agent, turn, {
    type: 'attempt_discarded',
    reason: `a call of ${found.tool} was written as text (${found.dialect})`,
    usage: message.usage,
  });
  turn.textCalls += 1;
  if (turn.textCalls > limit) throw new DroverError({ kind: 'answer.text_call', tool: found.tool, limit });
  turn.reminder = WRITTEN_CALL;
  return true;
}

// Ignores the stop reason "tool_calls": some servers send it without a call.
function isAnswerEmpty({ content, stop }: AssistantMessage): boolean {
  if (stop === 'pause' || stop === 'length') return false;
  return !content.some((part) => part.type === 'tool_call' || (part.type === 'text' && !isBlankForModel(part.text)));
}

async function askAgentCompacting(agent: Agent, turn: Turn, signal: AbortSignal): Promise<Answer> {
  if (isAgentPromptTooLong(agent)) await compactAgent({ agent, turn }, 'limit', signal);
  while (true) {
    try {
      return await askAgentOnce(agent, turn, signal);
    } catch (error) {
      if (fallBackAgent(agent, turn, error)) {
        // The next model may have a smaller context window.
        if (isAgentPromptTooLong(agent)) await compactAgent({ agent, turn }, 'limit', signal);
      } else if (!isPromptOverflow(error) || !(await compactAgent({ agent, turn }, 'overflow', signal))) throw error;
    }
  }
}

async function askAgentOnce(agent: Agent, turn: Turn, signal: AbortSignal): Promise<Answer> {
  const { conversation, toolset } = agent;
  toolset.update(conversation.messages);
  const reminder: readonly Message[] =
    turn.reminder === undefined ? [] : [{ role: 'user', content: [{ type: 'text', text: turn.reminder }] }];
  const messages = [...conversation.messages, ...reminder];
  const estimated = conversation.estimate(toolset.chars);
  const { routes, cacheKey, sampling } = agent;
  const { provider, model } = routes.current;
  const calibrate = (usage: Usage) => {
    const { input, cacheRead, cacheWrite } = usage;
    if (usage.estimated !== true) conversation.calibrate(estimated, input + cacheRead + cacheWrite);
  };
  return agent.ask(
    {
      ...requestPartsOfTurn(agent, turn, estimated),
      isShown: true,
      route: routes.current,
      fallsBack: routes.hasNext,
      request: (outputTokensMax) =>
        buildModelRequest({
          provider,
          model,
          system: conversation.system,
          tools: toolset.definitions,
          messages,
          outputTokensMax,
          cacheKey,
          sampling,
        }),
      inputTokens: conversation.expectedTokens(toolset.chars),
      inputTokensMax: promptTokensMax(messages, promptUtf8Bytes(conversation.system) + toolset.bytes),
      outputTokensMax: agentAnswerTokensMax(agent),
      admission: agent.admission,
      retry: agent.retry,
      patience: turn.patience,
      emit: (event) => emitTurnEvent(agent, turn, event),
      spend: (usage) => {
        const cost = agent.spend(usage, estimated);
        calibrate(usage);
        return cost;
      },
      book: (usage) => {
        agent.book(usage);
        calibrate(usage);
      },
      keep: (partial) => addTurnAnswer(agent, turn, partial),
    },
    signal,
  );
}
