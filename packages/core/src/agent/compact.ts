// Compacts an agent's conversation: before a request that leaves no room for its answer, after the provider
// rejected a prompt as too long, or when the user asks for it.
//
// Guarantees
//   1. A prompt leaves room for the answer, unless the task alone is too long for that.
//   2. A compaction that fails, or would make the history longer, changes nothing and emits the failure.
//   3. At most three compactions run without an answer between them. Each cuts more than the one before.

import {
  applyConversationCut,
  COMPACTIONS_IN_A_ROW_MAX,
  planConversationCut,
  planWishedConversationCut,
  SUMMARY_SYSTEM,
  conversationTranscript,
} from '../conversation/compaction.ts';
import type { Cut, CompactionReason } from '@drover/protocol/events';
import { promptTokensMax, promptUtf8Bytes } from '../conversation/prompt-bound.ts';
import { DroverError } from '../errors.ts';
import type { Message } from '@drover/protocol/messages';
import { buildModelRequest } from '../model/request.ts';
import { fallBackAgent } from './fall-back.ts';
import { requestPartsOfTurn, emitTurnEvent, textOfTurnAnswer, Turn, type Agent } from './turn.ts';

// Share of the window reserved for the answer: `outputTokensMax`, within these bounds.
const ANSWER_SHARE = { min: 0.2, max: 0.4 };
const ANSWER_TOKENS_MIN = 1_024; // requested even if the window seems full
const SUMMARY_TOKENS_MAX = 4_096;
const SUMMARY_SHARE = 0.1; // share of the window
const TRANSCRIPT_SHARE = 0.5; // share of the window
const TRANSCRIPT_ATTEMPTS = 4; // each attempt sends half as much as the one before
const NO_GAIN = 'a summary would be longer than what it replaces';

export function isPromptOverflow(error: unknown): boolean {
  return error instanceof DroverError && error.failure.kind === 'context.overflow';
}

/** Returns true if the next prompt would leave too little room for its answer. */
export function isAgentPromptTooLong(agent: Agent): boolean {
  return agentTokensNow(agent) > agentPromptLimit(agent, agent.routes.current.contextTokens);
}

/** Returns the output limit for the next answer, in tokens. */
export function agentAnswerTokensMax(agent: Agent): number {
  const { contextTokens, outputTokensMax } = agent.routes.current;
  const left = Math.max(ANSWER_TOKENS_MIN, contextTokens - agentTokensNow(agent));
  return Math.min(outputTokensMax, left);
}

/** Resolves to true if the conversation became shorter. */
export async function compactAgent(
  { agent, turn }: Pick<Compacting, 'agent' | 'turn'>,
  reason: Exclude<CompactionReason, 'wish'>,
  signal: AbortSignal,
): Promise<boolean> {
  if (turn.compactionsInARow >= COMPACTIONS_IN_A_ROW_MAX) return false;
  const { conversation, toolset } = agent;
  // After an overflow, the real window is smaller than the catalog says, or the provider counts more tokens.
  const { contextTokens } = agent.routes.current;
  const window = reason === 'overflow' ? Math.min(contextTokens, agentTokensNow(agent)) : contextTokens;
  const room = {
    tokensOf: (messages: readonly Message[]) => conversation.expectedTokensWith(messages, toolset.chars),
    limit: agentPromptLimit(agent, window),
    summaryTokens: agentSummaryTokensMax(agent, window),
  };
  const cut = planConversationCut(conversation.messages, room, turn.compactionsInARow);
  if (cut === undefined) return false;
  turn.compactionsInARow += 1;
  return carryOutCompaction({ agent, turn, reason }, cut, signal);
}

/** Compacts as much as possible, between two turns. A failure is emitted and changes nothing. */
export async function compactAgentOnWish(agent: Agent, { number, steps }: Turn, signal: AbortSignal): Promise<boolean> {
  const turn = Object.assign(new Turn(number), { steps });
  try {
    return await carryOutCompaction(
      { agent, turn, reason: 'wish' },
      planWishedConversationCut(agent.conversation.messages),
      signal,
    );
  } catch (error) {
    if (error instanceof DroverError) return false;
    throw error;
  }
}

type Compacting = { readonly agent: Agent; readonly turn: Turn; readonly reason: CompactionReason };

/** Applies a cut and emits the result. An undefined cut is emitted as a failed compaction. */
async function carryOutCompaction(compacting: Compacting, cut: Cut | undefined, signal: AbortSignal): Promise<boolean> {
  const { agent, turn, reason } = compacting;
  const { conversation } = agent;
  emitTurnEvent(agent, turn, { type: 'compaction_start', tokens: agentTokensNow(agent), reason });
  try {
    const { messages, summary } = await shortenAgentConversation(agent, { turn, cut }, signal);
    conversation.replace(messages);
    const told = { tokens: agentTokensNow(agent), ...(summary !== undefined && { summary }) };
    emitTurnEvent(agent, turn, { type: 'compaction_end', ok: true, ...told, ...cut });
    return true;
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    emitTurnEvent(agent, turn, {
      type: 'compaction_end',
      ok: false,
      tokens: agentTokensNow(agent),
      failure: error.failure,
    });
    if (signal.aborted || error.failure.kind === 'limit.reached') throw error;
    return false;
  }
}

async function shortenAgentConversation(
  agent: Agent,
  { turn, cut }: { readonly turn: Turn; readonly cut: Cut | undefined },
  signal: AbortSignal,
): Promise<{ readonly messages: readonly Message[]; readonly summary: string | undefined }> {
  const before = agent.conversation.messages;
  const isShorter = (messages: readonly Message[]): boolean =>
    agent.conversation.expectedTokensWith(messages, agent.toolset.chars) < agentTokensNow(agent);
  // Request a summary only if even the shortest one would make the history shorter.
  if (cut === undefined || !isShorter(applyConversationCut(before, cut, '-'))) throw agentCompactionFailed(NO_GAIN);
  const head = cut.tail === undefined ? [] : before.slice(0, before.length - cut.tail);
  const summary = cut.tail === undefined ? undefined : await askForAgentSummary({ agent, turn }, head, signal);
  const messages = applyConversationCut(before, cut, summary);
  if (!isShorter(messages)) throw agentCompactionFailed(NO_GAIN);
  return { messages, summary };
}

/** Asks for a summary. Halves the transcript and retries if the provider finds it too long. */
async function askForAgentSummary(
  of: Pick<Compacting, 'agent' | 'turn'>,
  head: readonly Message[],
  signal: AbortSignal,
): Promise<string> {
  const { agent } = of;
  const window = Math.min(agent.routes.current.contextTokens, agentTokensNow(agent));
  let chars = agent.conversation.charsIn(window * TRANSCRIPT_SHARE);
  for (let attempt = 1; ; attempt++) {
    try {
      return await agentSummaryOf(of, conversationTranscript(head, chars), signal);
    } catch (error) {
      if (fallBackAgent(agent, of.turn, error)) continue;
      if (!isPromptOverflow(error) || attempt >= TRANSCRIPT_ATTEMPTS) throw error;
      chars /= 2;
    }
  }
}

async function agentSummaryOf(
  { agent, turn }: Pick<Compacting, 'agent' | 'turn'>,
  text: string,
  signal: AbortSignal,
): Promise<string> {
  const { routes, cacheKey } = agent;
  const { provider, model, contextTokens } = routes.current;
  const messages: readonly Message[] = [{ role: 'user', content: [{ type: 'text', text }] }];
  const fixed = { provider, model, system: SUMMARY_SYSTEM, tools: [], messages, cacheKey: `${cacheKey}-summary` };
  const { message } = await agent.ask(
    {
      ...requestPartsOfTurn(agent, turn),
      isShown: false,
      route: routes.current,
      fallsBack: routes.hasNext,
      request: (outputTokensMax) => buildModelRequest({ ...fixed, outputTokensMax }),
      inputTokens: Math.ceil(text.length / Math.max(1, agent.conversation.charsIn(1_000) / 1_000)),
      // The transcript fitted into the context before. A higher bound could exceed the budget for no reason.
      inputTokensMax: Math.min(promptTokensMax(messages, promptUtf8Bytes(SUMMARY_SYSTEM)), contextTokens),
      outputTokensMax: agentSummaryTokensMax(agent, contextTokens),
      admission: agent.admission,
      retry: agent.retry,
      patience: turn.patience,
      emit: () => undefined, // views do not show this request
      spend: (usage) => agent.spend(usage),
      book: (usage) => agent.book(usage),
    },
    signal,
  );
  return textOfTurnAnswer(message) ?? '';
}

function agentTokensNow({ conversation, toolset }: Agent): number {
  return conversation.expectedTokens(toolset.chars);
}

function agentPromptLimit({ routes }: Agent, window: number): number {
  const { outputTokensMax } = routes.current;
  const { min, max } = ANSWER_SHARE;
  return window - Math.min(Math.max(outputTokensMax, window * min), window * max);
}

function agentSummaryTokensMax({ routes }: Agent, window: number): number {
  return Math.ceil(Math.min(SUMMARY_TOKENS_MAX, routes.current.outputTokensMax, window * SUMMARY_SHARE));
}

function agentCompactionFailed(message: string): DroverError {
  return new DroverError({ kind: 'compaction.failed', message });
}
