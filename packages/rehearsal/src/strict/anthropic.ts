// The requests that the Anthropic Messages API refuses, with its error messages.

import { isList, isObject, numberOf, objectsIn, textOf, type Json, type JsonObject } from '../json.ts';
import { isSeal, sealOf } from '../answer/seal.ts';
import { shapeProblems } from './anthropic-shape.ts';
import { imageProblems, type PlacedImage } from './images.ts';
import type { Memory } from '../wire/memory.ts';
import type { Refusal } from '../wire/wire.ts';

const CACHE_MARKS_MAX = 4;

export function anthropicProblem(body: JsonObject, memory: Memory): Refusal | undefined {
  const message = shapeProblems(body).next().value ?? senseProblems(body, memory).next().value;
  return message === undefined ? undefined : { status: 400, type: 'invalid_request_error', message };
}

type Block = JsonObject;
/** A message with its blocks; a plain text counts as one block. */
type Turn = { readonly index: number; readonly role: string; readonly blocks: readonly Placed[] };
type Placed = { readonly at: string; readonly type: string; readonly block: Block };

function* senseProblems(body: JsonObject, memory: Memory): Generator<string, undefined> {
  const turns = objectsIn(body['messages']).map(turnOf);
  if (turns[0]?.role !== 'user') yield 'messages: first message must use the "user" role';
  yield* contentProblems(turns);
  yield* systemProblems(body['system']);
  yield* placeProblems(turns);
  yield* pairProblems(joined(turns));
  yield* markProblems(body);
  yield* thinkingProblems(body, turns);
  yield* imageProblems(turns.flatMap(images));
  const last = turns.at(-1);
  if (last?.role === 'assistant' && !memory.isPaused(last.blocks.map(({ block }) => block)))
    yield 'This model does not support assistant message prefill. The conversation must end with a user message.';
}

function turnOf(message: JsonObject, index: number): Turn {
  const content = message['content'];
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content);
  return {
    index,
    role: textOf(message['role']),
    blocks: blocks.map((block, place) => ({
      at: `messages.${index}.content.${place}`,
      type: textOf(block['type']),
      block,
    })),
  };
}

// ── content ───────────────────────────────────────────────────────────────────────────────────

function* contentProblems(turns: readonly Turn[]): Generator<string> {
  for (const { index, blocks } of turns) {
    if (blocks.length === 0 && index < turns.length)
      yield `messages.${index}: all messages must have non-empty content except for the optional final assistant message`;
    for (const { type, block } of blocks) {
      if (type === 'text') yield* textProblems(block, 'messages');
      if (type === 'tool_result')
        for (const part of objectsIn(block['content']))
          if (part['type'] === 'text') yield* textProblems(part, 'messages');
    }
  }
}

function* systemProblems(system: Json | undefined): Generator<string> {
  if (system === undefined || typeof system === 'string') return;
  if (!isList(system)) return yield 'system: Input should be a valid list';
  for (const block of objectsIn(system)) yield* textProblems(block, 'system');
}

function* textProblems(block: Block, where: string): Generator<string> {
  const text = textOf(block['text']);
  if (text === '' && isObject(block['cache_control'])) yield 'cache_control cannot be set for empty text blocks';
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

function* placeProblems(turns: readonly Turn[]): Generator<string> {
  for (const { role, blocks } of turns)
    for (const { at, type } of blocks) {
      const needed = ROLE_OF[type];
      if (needed !== undefined && needed !== role)
        yield `${at}: \`${type}\` blocks can only be in \`${needed}\` messages`;
    }
}

/** Consecutive messages of one role are one turn. */
function joined(turns: readonly Turn[]): readonly Turn[] {
  const result: Turn[] = [];
  for (const turn of turns) {
    const last = result.at(-1);
    if (last?.role === turn.role) result[result.length - 1] = { ...last, blocks: [...last.blocks, ...turn.blocks] };
    else result.push(turn);
  }
  return result;
}

function* pairProblems(turns: readonly Turn[]): Generator<string> {
  const seen = new Set<string>();
  for (const [position, turn] of turns.entries()) {
    const calls = turn.blocks.filter(({ type }) => type === 'tool_use');
    for (const { at, block } of calls) {
      if (seen.has(textOf(block['id']))) yield `${at}: \`tool_use\` ids must be unique`;
      seen.add(textOf(block['id']));
    }
    const next = turns[position + 1]?.blocks ?? [];
    // Results count only at the start of the next message; after other content they are too late.
    const end = next.findIndex(({ type }) => type !== 'tool_result');
    const answered = new Set((end === -1 ? next : next.slice(0, end)).map(({ block }) => textOf(block['tool_use_id'])));
    const missing = calls.map(({ block }) => textOf(block['id'])).filter((id) => !answered.has(id));
    if (missing.length > 0)
      yield `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    yield* resultProblems(turn, turns[position - 1]);
  }
}

function* resultProblems(turn: Turn, before: Turn | undefined): Generator<string> {
  const asked = new Set(
    before?.blocks.filter(({ type }) => type === 'tool_use').map(({ block }) => textOf(block['id'])),
  );
  const answered = new Set<string>();
  for (const { at, type, block } of turn.blocks) {
    if (type !== 'tool_result') continue;
    const id = textOf(block['tool_use_id']);
    if (!asked.has(id))
      yield `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    if (answered.has(id))
      yield `${at}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
    answered.add(id);
  }
}

// ── marks, thinking, images ───────────────────────────────────────────────────────────────────

function* markProblems(body: JsonObject): Generator<string> {
  const inMessages = objectsIn(body['messages']).flatMap(({ content }) => objectsIn(content));
  const inResults = inMessages.flatMap(({ content }) => objectsIn(content));
  const all = [body, ...objectsIn(body['tools']), ...objectsIn(body['system']), ...inMessages, ...inResults];
  const found = all.filter((item) => isObject(item['cache_control'])).length;
  if (found > CACHE_MARKS_MAX)
    yield `A maximum of ${CACHE_MARKS_MAX} blocks with cache_control may be provided. Found ${found}.`;
}

function* thinkingProblems(body: JsonObject, turns: readonly Turn[]): Generator<string> {
  const latest = turns.findLast(({ role }) => role === 'assistant');
  for (const { at, type, block } of latest?.blocks ?? []) {
    const changed =
      (type === 'thinking' && block['signature'] !== sealOf(textOf(block['thinking']))) ||
      (type === 'redacted_thinking' && !isSeal(textOf(block['data'])));
    if (changed)
      yield `${at}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`;
  }
  const thinking = body['thinking'];
  if (!isObject(thinking) || thinking['type'] !== 'enabled') return;
  const budget = numberOf(thinking['budget_tokens']);
  if (budget === undefined) return yield 'thinking.enabled.budget_tokens: Field required';
  if (budget >= (numberOf(body['max_tokens']) ?? Infinity))
    yield '`max_tokens` must be greater than `thinking.budget_tokens`.';
}

function images({ blocks }: Turn): readonly PlacedImage[] {
  return blocks.flatMap(({ at, type, block }) => {
    if (type === 'image') return placedImage(block, at);
    const parts = type === 'tool_result' ? objectsIn(block['content']) : [];
    return parts.flatMap((part, index) =>
      part['type'] === 'image' ? placedImage(part, `${at}.tool_result.content.${index}`) : [],
    );
  });
}

function placedImage(block: Block, at: string): readonly PlacedImage[] {
  const source = block['source'];
  return isObject(source) && source['type'] === 'base64'
    ? [{ at: `${at}.image.source.base64`, data: textOf(source['data']) }]
    : [];
}
