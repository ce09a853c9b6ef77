// Request builder: the only place that makes model requests from a history.
//
// Guarantees, for any history: after aborts, crashes, compactions or a change of provider
//   1. Every call has exactly one result, in the next user message. Results come first, in the order of the calls.
//   2. No text is blank and no message is empty. User and assistant messages alternate.
//   3. The first and the last message are the user's. Exception: a paused answer goes back last, unchanged.
//   4. A note follows every answer that was cut off.
//   5. Call ids are unique and fit the provider's pattern and length. No string holds a lone surrogate.
//   6. Cache marks, images and the body are within the provider's limits.
//   7. The same history gives the same bytes: ids are rewritten by position, never at random.

import { isJsonObject, type Json } from '@drover/protocol/json';
import { modelImageSize } from './image-size.ts';
import { isModelAnswerCutOff } from './partial-answer.ts';
import type {
  AssistantMessage,
  AssistantPart,
  ImagePart,
  Message,
  TextPart,
  ToolDefinition,
  ToolResult,
} from '@drover/protocol/messages';
import type { ModelRequest, RequestMessage, RequestPart, Sampling } from '@drover/protocol/model';
import type { WireLimits } from './provider.ts';

const TOOL_NAME_CHARS_MAX = 64;
const IMAGES_MAX = 100;
const IMAGE_SIDE_MAX = 8_000;
const MANY_IMAGES = 20; // above this count, the smaller side limit applies
const IMAGE_SIDE_MAX_AMONG_MANY = 2_000;
// Cache marks: the system prompt has one. The last two user messages have one each, so the previous request's mark
// is still present and its cache entry is hit. The last mark goes inside a message that was joined from two, such
// as the shared seed and a worker's task: other requests end at that point.
const MARKED_MESSAGES = 2;
const BODY_OVERHEAD = 1.1; // JSON syntax and escapes

export type RequestInput = {
  readonly provider: { readonly id: string; readonly limits: WireLimits };
  readonly model: string;
  readonly system: string;
  readonly tools: readonly ToolDefinition[];
  readonly messages: readonly Message[];
  readonly outputTokensMax: number;
  readonly cacheKey: string;
  readonly sampling?: Sampling | undefined;
};

export function buildModelRequest(input: RequestInput): ModelRequest {
  const { limits } = input.provider;
  const fits = requestImageFilter(input.messages, limits);
  const ids = new IdRewriter(limits);
  const draft: RequestMessage[] = [];

  input.messages.forEach((message, at) => {
    if (message.role === 'user') addUserToRequest(draft, [], cleanUserPartsOfRequest(message.content, fits));
    if (message.role !== 'assistant') return;
    const calls: { from: string; to: string; name: string }[] = [];
    const content = cleanAssistantPartsOfRequest(message, input, (from, name) => {
      const to = ids.next(from);
      calls.push({ from, to, name });
      return to;
    });
    addAssistantToRequest(draft, content);
    if (calls.length > 0) addUserToRequest(draft, requestResultsOfCalls(calls, input.messages.slice(at + 1), fits), []);
    if (isModelAnswerCutOff(message) && content.length > 0)
      addUserToRequest(draft, [], [cutOffNoteForModel(message.stop)]);
  });

  return {
    model: input.model,
    system: input.system.toWellFormed(),
    tools: input.tools,
    messages: markCachePointsOfRequest(closeRequestMessages(draft, input), limits),
    outputTokensMax: input.outputTokensMax,
    cacheKey: input.cacheKey,
    ...(input.sampling !== undefined && { sampling: input.sampling }),
  };
}

/** Whether a text holds only white space and control characters; providers refuse such text. */
export function isBlankForModel(text: string): boolean {
  return !/[^\s\p{Cc}]/u.test(text);
}

// ── messages ──────────────────────────────────────────────────────────────────────────────────

function addUserToRequest(
  draft: RequestMessage[],
  results: readonly ToolResult[],
  content: readonly (TextPart | ImagePart)[],
): void {
  if (results.length === 0 && content.length === 0) return;
  const last = draft.at(-1);
  if (last?.role !== 'user') {
    draft.push({ role: 'user', results, content, cacheMark: false });
    return;
  }
  draft[draft.length - 1] = {
    ...last,
    results: [...last.results, ...results],
    content: [...last.content, ...content],
    innerMark: last.results.length + last.content.length,
  };
}

function addAssistantToRequest(draft: RequestMessage[], content: readonly RequestPart[]): void {
  if (content.length === 0) return;
  const last = draft.at(-1);
  if (last?.role === 'assistant')
    draft[draft.length - 1] = { role: 'assistant', content: [...last.content, ...content] };
  else draft.push({ role: 'assistant', content });
}

function closeRequestMessages(draft: readonly RequestMessage[], input: RequestInput): readonly RequestMessage[] {
  const messages = [...draft];
  if (messages[0]?.role !== 'user') messages.unshift(userMessageForModel('Go on.'));
  const last = input.messages.at(-1);
  const isPaused = last?.role === 'assistant' && last.stop === 'pause' && isNativeToModel(last, input);
  if (messages.at(-1)?.role === 'assistant' && !isPaused) messages.push(userMessageForModel('Go on.'));
  // The cut-off note alone asks the model for nothing.
  else if (last !== undefined && isModelAnswerCutOff(last))
    addUserToRequest(messages, [], [{ type: 'text', text: 'Go on.' }]);
  return messages;
}

/** A note for the model: the user saw this answer, and it is incomplete. */
function cutOffNoteForModel(stop: 'aborted' | 'error'): TextPart {
  const how = stop === 'aborted' ? 'was interrupted' : 'was cut off by an error';
  return {
    type: 'text',
    text: `[Your answer above ${how} before it was complete. The user saw it as far as it came.]`,
  };
}

function userMessageForModel(text: string): RequestMessage {
  return { role: 'user', results: [], content: [{ type: 'text', text }], cacheMark: false };
}

function markCachePointsOfRequest(messages: readonly RequestMessage[], limits: WireLimits): readonly RequestMessage[] {
  let left = Math.min(MARKED_MESSAGES, limits.cacheMarksMax - 1);
  const joined = messages.findLast((each) => each.role === 'user' && each.innerMark !== undefined);
  const isRoom = limits.cacheMarksMax > MARKED_MESSAGES + 1;
  return messages
    .toReversed()
    .map((message) => {
      if (message.role !== 'user') return message;
      left -= 1;
      const { innerMark, ...rest } = message;
      const marksInside = isRoom && message === joined && innerMark !== undefined;
      return { ...rest, cacheMark: left >= 0, ...(marksInside && { innerMark }) };
    })
    .toReversed();
}

// ── the assistant's parts ─────────────────────────────────────────────────────────────────────

function isNativeToModel(message: AssistantMessage, input: RequestInput): boolean {
  return message.native?.provider === input.provider.id && message.native.model === input.model;
}

function cleanAssistantPartsOfRequest(
  message: AssistantMessage,
  input: RequestInput,
  newId: (from: string, name: string) => string,
): readonly RequestPart[] {
  const items = isNativeToModel(message, input) ? (message.native?.items ?? []) : [];
  const parts: RequestPart[] = [];
  const addStandalone = (at: number) => {
    for (const item of items)
      if ('before' in item && item.before === at)
        parts.push({ type: 'native', native: wellFormedRequestText(item.payload) });
  };
  message.content.forEach((part, at) => {
    addStandalone(at);
    const own = items.find((item) => 'part' in item && item.part === at);
    const clean = cleanRequestPart(part, newId, own !== undefined);
    if (clean !== undefined)
      parts.push(own === undefined ? clean : { ...clean, native: wellFormedRequestText(own.payload) });
  });
  addStandalone(message.content.length);
  while (isLeadingRequestPart(parts.at(-1), input.provider.limits)) parts.pop();
  return parts;
}

/** Whether the part may not be the last one of a message. Providers require content after thinking. */
function isLeadingRequestPart(part: RequestPart | undefined, { leadingTypes }: WireLimits): boolean {
  if (part?.type !== 'native') return part?.type === 'thinking';
  const type = isJsonObject(part.native) ? part.native['type'] : undefined;
  return typeof type === 'string' && leadingTypes.includes(type);
}

function cleanRequestPart(
  part: AssistantPart,
  newId: (from: string, name: string) => string,
  hasNative: boolean,
): AssistantPart | undefined {
  switch (part.type) {
    case 'text':
      return isBlankForModel(part.text) ? undefined : { type: 'text', text: part.text.toWellFormed() };
    case 'thinking':
      // Signed thinking goes back unchanged. Providers refuse unsigned thinking, such as another provider's.
      return hasNative ? { type: 'thinking', text: part.text.toWellFormed() } : undefined;
    case 'tool_call': {
      const name = toolNameOfRequest(part.name);
      return {
        type: 'tool_call',
        id: newId(part.id, name),
        name,
        args: isJsonObject(part.args) ? wellFormedRequestText(part.args) : {},
      };
    }
  }
}

function toolNameOfRequest(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, TOOL_NAME_CHARS_MAX) || 'unknown';
}

function wellFormedRequestText(value: Json): Json {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormedRequestText);
  if (isJsonObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key.toWellFormed(), wellFormedRequestText(inner)]),
    );
  }
  return value;
}

class IdRewriter {
  readonly #limits: WireLimits;
  readonly #used = new Set<string>();

  constructor(limits: WireLimits) {
    this.#limits = limits;
  }

  next(id: string): string {
    const { callIdPattern, callIdCharsMax } = this.#limits;
    const allowed = id.length <= callIdCharsMax && callIdPattern.test(id) && !this.#used.has(id);
    let name = id;
    for (let n = this.#used.size; !allowed && (name === id || this.#used.has(name)); n++) name = `call_${n}`;
    this.#used.add(name);
    return name;
  }
}

// ── results ───────────────────────────────────────────────────────────────────────────────────

type AskedCall = { readonly from: string; readonly to: string; readonly name: string };

// Servers reuse ids within a response and across responses. A result is therefore searched only between its call
// and the next answer, and the second result with an id belongs to the second call with that id.
function requestResultsOfCalls(
  calls: readonly AskedCall[],
  later: readonly Message[],
  fits: ImageFits,
): readonly ToolResult[] {
  const next = later.findIndex(({ role }) => role === 'assistant');
  const found = later
    .slice(0, next === -1 ? later.length : next)
    .flatMap((message) => (message.role === 'tool' ? message.results : []));
  return calls.map(({ from, to, name }) => {
    const index = found.findIndex((result) => result.id === from);
    const [result] = index === -1 ? [] : found.splice(index, 1);
    if (result === undefined) {
      return {
        id: to,
        name,
        output: 'Interrupted: there is no result of this call, and it may or may not have run.',
        isError: true,
      };
    }
    const images = (result.images ?? []).filter(fits);
    const output = isBlankForModel(result.output) ? '(no output)' : result.output.toWellFormed();
    return { id: to, name, output, isError: result.isError, ...(images.length > 0 && { images }) };
  });
}

// ── the user's parts ──────────────────────────────────────────────────────────────────────────

function cleanUserPartsOfRequest(
  content: readonly (TextPart | ImagePart)[],
  fits: ImageFits,
): readonly (TextPart | ImagePart)[] {
  return content.flatMap((part): readonly (TextPart | ImagePart)[] => {
    if (part.type === 'image')
      return [fits(part) ? part : { type: 'text', text: '[An image stood here; it is too large to be sent.]' }];
    return isBlankForModel(part.text) ? [] : [{ type: 'text', text: part.text.toWellFormed() }];
  });
}

type ImageFits = (image: ImagePart) => boolean;

// Keeps the newest images, as many as the provider accepts and the body has room for.
function requestImageFilter(messages: readonly Message[], limits: WireLimits): ImageFits {
  const images = messages
    .flatMap(requestImagesOf)
    .filter(({ data }) => data.length <= limits.imageBytesMax)
    .slice(-IMAGES_MAX);
  const sideMax = images.length > MANY_IMAGES ? IMAGE_SIDE_MAX_AMONG_MANY : IMAGE_SIDE_MAX;
  let room = images.length === 0 ? 0 : limits.bodyBytesMax - requestTextBytes(messages) * BODY_OVERHEAD;
  const kept = new Set<ImagePart>();
  for (const image of images.toReversed()) {
    const size = modelImageSize(image.data);
    if (size === undefined || Math.max(size.width, size.height) > sideMax) continue;
    room -= image.data.length * BODY_OVERHEAD;
    if (room < 0) break;
    kept.add(image);
  }
  return (image) => kept.has(image);
}

function requestImagesOf(message: Message): readonly ImagePart[] {
  switch (message.role) {
    case 'user':
      return message.content.filter((part) => part.type === 'image');
    case 'tool':
      return message.results.flatMap((result) => result.images ?? []);
    case 'assistant':
      return [];
  }
}

function requestTextBytes(messages: readonly Message[]): number {
  const withoutImages = (key: string, value: unknown) => (key === 'data' ? '' : value);
  return Buffer.byteLength(JSON.stringify(messages, withoutImages));
}
