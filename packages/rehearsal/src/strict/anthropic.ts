// The requests that the Anthropic Messages API refuses, with its error messages.

import {
  isRehearsalList,
  isRehearsalObject,
  rehearsalNumber,
  rehearsalObjectsIn,
  rehearsalText,
  type Json,
  type JsonObject,
} from '../json.ts';
import { isAnswerSeal, sealOfAnswer } from '../answer/seal.ts';
import { strictShapeProblems } from './anthropic-shape.ts';
import { strictImageProblems, type PlacedImage } from './images.ts';
import type { Memory } from '../wire/memory.ts';
import type { Refusal } from '../wire/wire.ts';

const CACHE_MARKS_MAX = 4;

export function strictAnthropicProblem(body: JsonObject, memory: Memory): Refusal | undefined {
  const message = strictShapeProblems(body).next().value ?? strictSenseProblems(body, memory).next().value;
  return message === undefined ? undefined : { status: 400, type: 'invalid_request_error', message };
}

type Block = JsonObject;
/** A message with its blocks; a plain text counts as one block. */
type Turn = { readonly index: number; readonly role: string; readonly blocks: readonly Placed[] };
type Placed = { readonly at: string; readonly type: string; readonly block: Block };

function* strictSenseProblems(body: JsonObject, memory: Memory): Generator<string, undefined> {
  const turns = rehearsalObjectsIn(body['messages']).map(strictTurnOf);
  if (turns[0]?.role !== 'user') yield 'messages: first message must use the "user" role';
  yield* strictContentProblems(turns);
  yield* strictSystemProblems(body['system']);
  yield* strictPlaceProblems(turns);
  yield* strictPairProblems(joinStrictTurns(turns));
  yield* strictCacheMarkProblems(body);
  yield* strictThinkingProblems(body, turns);
  yield* strictImageProblems(turns.flatMap(strictImagesOf));
  const last = turns.at(-1);
  if (last?.role === 'assistant' && !memory.isPaused(last.blocks.map(({ block }) => block)))
    yield 'This model does not support assistant message prefill. The conversation must end with a user message.';
}

function strictTurnOf(message: JsonObject, index: number): Turn {
  const content = message['content'];
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : rehearsalObjectsIn(content);
  return {
    index,
    role: rehearsalText(message['role']),
    blocks: blocks.map((block, place) => ({
      at: `messages.${index}.content.${place}`,
      type: rehearsalText(block['type']),
      block,
    })),
  };
}

// ── content ───────────────────────────────────────────────────────────────────────────────────

function* strictContentProblems(turns: readonly Turn[]): Generator<string> {
  for (const { index, blocks } of turns) {
    if (blocks.length === 0 && index < turns.length)
      yield `messages.${index}: all messages must have non-empty content except for the optional final assistant message`;
    for (const { type, block } of blocks) {
      if (type === 'text') yield* strictTextProblems(block, 'messages');
      if (type === 'tool_result')
        for (const part of rehearsalObjectsIn(block['content']))
          if (part['type'] === 'text') yield* strictTextProblems(part, 'messages');
    }
  }
}

function* strictSystemProblems(system: Json | undefined): Generator<string> {
  if (system === undefined || typeof system === 'string') return;
  if (!isRehearsalList(system)) return yield 'system: Input should be a valid list';
  for (const block of rehearsalObjectsIn(system)) yield* strictTextProblems(block, 'system');
}

function* strictTextProblems(block: Block, where: string): Generator<string> {
  const text = rehearsalText(block['text']);
  if (text === '' && isRehearsalObject(block['cache_control']))
    yield 'cache_control cannot be set for empty text blocks';
  if (text === '') yield `${where}: text content blocks must be non-empty`;
  if (text.trim() === '') yield `${where}: text content blocks must contain non-whitespace text`;
}

// ── calls and results ─────────────────────────────────────────────────────────────────────────

const ROLE_OF: Readonly<Record<string, string>> = {
  tool_use: 'assistant',
  thinking: 'assistant',
  redacted_thinking: 'assistant',
  tool_result: 'user',
};

function* strictPlaceProblems(turns: readonly Turn[]): Generator<string> {
  for (const { role, blocks } of turns)
    for (const { at, type } of blocks) {
      const needed = ROLE_OF[type];
      if (needed !== undefined && needed !== role)
        yield `${at}: \`${type}\` blocks can only be in \`${needed}\` messages`;
    }
}

/** Consecutive messages of one role are one turn. */
function joinStrictTurns(turns: readonly Turn[]): readonly Turn[] {
  const result: Turn[] = [];
  for (const turn of turns) {
    const last = result.at(-1);
    if (last?.role === turn.role) result[result.length - 1] = { ...last, blocks: [...last.blocks, ...turn.blocks] };
    else result.push(turn);
  }
  return result;
}

function* strictPairProblems(turns: readonly Turn[]): Generator<string> {
  const seen = new Set<string>();
  for (const [position, turn] of turns.entries()) {
    const calls = turn.blocks.filter(({ type }) => type === 'tool_use');
    for (const { at, block } of calls) {
      if (seen.has(rehearsalText(block['id']))) yield `${at}: \`tool_use\` ids must be unique`;
      seen.add(rehearsalText(block['id']));
    }
    const next = turns[position + 1]?.blocks ?? [];
    // Results count only at the start of the next message; after other content they are too late.
    const end = next.findIndex(({ type }) => type !== 'tool_result');
    const answered = new Set(
      (end === -1 ? next : next.slice(0, end)).map(({ block }) => rehearsalText(block['tool_use_id'])),
    );
    const missing = calls.map(({ block }) => rehearsalText(block['id'])).filter((id) => !answered.has(id));
    if (missing.length > 0)
      yield `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    yield* strictResultProblems(turn, turns[position - 1]);
  }
}

function* strictResultProblems(turn: Turn, before: Turn | undefined): Generator<string> {
  const asked = new Set(
    before?.blocks.filter(({ type }) => type === 'tool_use').map(({ block }) => rehearsalText(block['id'])),
  );
  const answered = new Set<string>();
  for (const { at, type, block } of turn.blocks) {
    if (type !== 'tool_result') continue;
    const id = rehearsalText(block['tool_use_id']);
    if (!asked.has(id))
      yield `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    if (answered.has(id))
      yield `${at}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
    answered.add(id);
  }
}

// ── marks, thinking, images ───────────────────────────────────────────────────────────────────

function* strictCacheMarkProblems(body: JsonObject): Generator<string> {
  const inMessages = rehearsalObjectsIn(body['messages']).flatMap(({ content }) => rehearsalObjectsIn(content));
  const inResults = inMessages.flatMap(({ content }) => rehearsalObjectsIn(content));
  const all = [
    body,
    ...rehearsalObjectsIn(body['tools']),
    ...rehearsalObjectsIn(body['system']),
    ...inMessages,
    ...inResults,
  ];
  const found = all.filter((item) => isRehearsalObject(item['cache_control'])).length;
  if (found > CACHE_MARKS_MAX)
    yield `A maximum of ${CACHE_MARKS_MAX} blocks with cache_control may be provided. Found ${found}.`;
}

function* strictThinkingProblems(body: JsonObject, turns: readonly Turn[]): Generator<string> {
  const latest = turns.findLast(({ role }) => role === 'assistant');
  for (const { at, type, block } of latest?.blocks ?? []) {
    const changed =
      (type === 'thinking' && block['signature'] !== sealOfAnswer(rehearsalText(block['thinking']))) ||
      (type === 'redacted_thinking' && !isAnswerSeal(rehearsalText(block['data'])));
    if (changed)
      yield `${at}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`;
  }
  const thinking = body['thinking'];
  if (!isRehearsalObject(thinking) || thinking['type'] !== 'enabled') return;
  const budget = rehearsalNumber(thinking['budget_tokens']);
  if (budget === undefined) return yield 'thinking.enabled.budget_tokens: Field required';
  if (budget >= (rehearsalNumber(body['max_tokens']) ?? Infinity))
    yield '`max_tokens` must be greater than `thinking.budget_tokens`.';
}

function strictImagesOf({ blocks }: Turn): readonly PlacedImage[] {
  return blocks.flatMap(({ at, type, block }) => {
    if (type === 'image') return strictPlacedImage(block, at);
    const parts = type === 'tool_result' ? rehearsalObjectsIn(block['content']) : [];
    return parts.flatMap((part, index) =>
      part['type'] === 'image' ? strictPlacedImage(part, `${at}.tool_result.content.${index}`) : [],
    );
  });
}

function strictPlacedImage(block: Block, at: string): readonly PlacedImage[] {
  const source = block['source'];
  return isRehearsalObject(source) && source['type'] === 'base64'
    ? [{ at: `${at}.image.source.base64`, data: rehearsalText(source['data']) }]
    : [];
}
