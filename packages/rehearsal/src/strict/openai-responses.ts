// The requests that the OpenAI Responses API refuses, with its error messages.

import { isRehearsalList, isRehearsalObject, rehearsalObjectsIn, rehearsalText, type JsonObject } from '../json.ts';
import { isAnswerSeal } from '../answer/seal.ts';
import type { Memory } from '../wire/memory.ts';
import type { Refusal } from '../wire/wire.ts';
import {
  strictFunctionProblems,
  strictMissing,
  strictNameProblems,
  strictRefusalOf,
  strictTooLong,
  strictUnsupported,
  strictWrongType,
  type Problem,
} from './openai.ts';

const ID_CHARS_MAX = 64;
const REQUEST_KEYS = new Set(
  (
    'access_programs background context_management conversation image include input instructions max_output_tokens max_tool_calls ' +
    'client_metadata metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options ' +
    'prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice ' +
    'tools top_logprobs top_p truncation user'
  ).split(' '),
);
const ITEM_TYPES = [
  'custom_tool_call',
  'custom_tool_call_output',
  'function_call',
  'function_call_output',
  'item_reference',
  'message',
  'reasoning',
  'web_search_call',
];
const ID_PREFIXES: Readonly<Record<string, string>> = { message: 'msg', reasoning: 'rs', function_call: 'fc' };
const ROLES = ['assistant', 'system', 'developer', 'user'];

export function strictResponsesProblem(body: JsonObject, memory: Memory): Refusal | undefined {
  return strictRefusalOf(strictResponsesProblems(body, memory).next().value);
}

function* strictResponsesProblems(body: JsonObject, memory: Memory): Generator<Problem, undefined> {
  const unknown = Object.keys(body).find((key) => !REQUEST_KEYS.has(key));
  if (unknown !== undefined)
    yield { message: `Unknown parameter: '${unknown}'.`, param: unknown, code: 'unknown_parameter' };
  if (typeof body['model'] !== 'string' || body['model'] === '') yield strictMissing('model');
  const { input, previous_response_id: previous } = body;
  if (typeof previous === 'string')
    yield {
      message: `Previous response with id '${previous}' not found.`,
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    };
  if (input === undefined || (isRehearsalList(input) && input.length === 0))
    yield {
      message: "One of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided.",
      param: 'input',
      code: 'missing_required_parameter',
    };
  yield* strictResponsesToolProblems(body);
  if (typeof input === 'string') return;
  if (!isRehearsalList(input)) return void (yield strictWrongType('input', 'a string or an array of objects', input));
  for (const [index, item] of input.entries()) {
    if (isRehearsalObject(item)) yield* strictItemProblems(item, `input[${index}]`);
    else yield strictWrongType(`input[${index}]`, 'an object', item);
  }
  const items = rehearsalObjectsIn(input);
  yield* strictDuplicateProblems(items);
  yield* strictResponsesPairProblems(items);
  yield* strictReasoningProblems(items, memory);
}

function* strictItemProblems(item: JsonObject, at: string): Generator<Problem> {
  const type = strictTypeOfItem(item);
  if (!ITEM_TYPES.includes(type)) yield strictUnsupported(`${at}.type`, type, ITEM_TYPES);
  const { id, call_id: callId } = item;
  if (typeof id === 'string') {
    const prefix = ID_PREFIXES[type];
    if (id.length > ID_CHARS_MAX) yield strictTooLong(`${at}.id`, ID_CHARS_MAX, id.length);
    if (prefix !== undefined && !id.startsWith(prefix))
      yield {
        message: `Invalid '${at}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
        param: `${at}.id`,
        code: 'invalid_value',
      };
  }
  if (type === 'function_call' || type === 'function_call_output') {
    if (typeof callId !== 'string') return yield strictMissing(`${at}.call_id`);
    if (callId === '')
      yield {
        message: `Invalid '${at}.call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
        param: `${at}.call_id`,
        code: 'empty_string',
      };
    if (callId.length > ID_CHARS_MAX) yield strictTooLong(`${at}.call_id`, ID_CHARS_MAX, callId.length);
  }
  if (type === 'function_call') {
    if (typeof item['name'] !== 'string') yield strictMissing(`${at}.name`);
    if (typeof item['arguments'] !== 'string') yield strictWrongType(`${at}.arguments`, 'a string', item['arguments']);
  }
  if (type === 'function_call_output' && item['output'] === undefined) yield strictMissing(`${at}.output`);
  if (type === 'reasoning' && !isRehearsalList(item['summary'])) yield strictMissing(`${at}.summary`);
  if (type === 'message') yield* strictResponsesMessageProblems(item, at);
}

function* strictResponsesMessageProblems(item: JsonObject, at: string): Generator<Problem> {
  const { role, content } = item;
  if (typeof role !== 'string' || !ROLES.includes(role)) yield strictUnsupported(`${at}.role`, role, ROLES);
  if (typeof content === 'string') return;
  if (!isRehearsalList(content))
    return yield content === undefined
      ? strictMissing(`${at}.content`)
      : strictWrongType(`${at}.content`, 'a string or an array of objects', content);
  const allowed = role === 'assistant' ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_file'];
  for (const [index, part] of rehearsalObjectsIn(content).entries())
    if (!allowed.includes(rehearsalText(part['type'])))
      yield strictUnsupported(`${at}.content[${index}].type`, part['type'], allowed);
}

function* strictDuplicateProblems(items: readonly JsonObject[]): Generator<Problem> {
  const seen = new Set<string>();
  for (const item of items) {
    const ids = [
      item['id'],
      item['call_id'] === undefined ? undefined : `${strictTypeOfItem(item)} ${rehearsalText(item['call_id'])}`,
    ];
    for (const id of ids) {
      if (typeof id !== 'string') continue;
      if (seen.has(id))
        yield {
          message: `Duplicate item found with id ${rehearsalText(item['id']) || rehearsalText(item['call_id'])}. Remove duplicate items from your input and try again.`,
          param: 'input',
        };
      seen.add(id);
    }
  }
}

function* strictResponsesPairProblems(items: readonly JsonObject[]): Generator<Problem> {
  const called = new Set<string>();
  const answered = new Set<string>();
  for (const item of items) {
    const id = rehearsalText(item['call_id']);
    if (strictTypeOfItem(item) === 'function_call') called.add(id);
    if (strictTypeOfItem(item) !== 'function_call_output') continue;
    if (!called.has(id))
      yield { message: `No tool call found for function call output with call_id ${id}.`, param: 'input' };
    answered.add(id);
  }
  for (const id of called)
    if (!answered.has(id)) yield { message: `No tool output found for function call ${id}.`, param: 'input' };
}

function* strictReasoningProblems(items: readonly JsonObject[], { after, before, stored }: Memory): Generator<Problem> {
  for (const [index, item] of items.entries()) {
    const id = rehearsalText(item['id']);
    const needed = before.get(id);
    if (needed !== undefined && items[index - 1]?.['id'] !== needed)
      yield {
        message: `Item '${id}' of type '${strictTypeOfItem(item)}' was provided without its required 'reasoning' item: '${needed}'.`,
        param: 'input',
      };
    if (strictTypeOfItem(item) !== 'reasoning') continue;

    const sealed = item['encrypted_content'];
    if (typeof sealed === 'string') {
      if (!isAnswerSeal(sealed))
        yield {
          message: `The encrypted content for item ${id} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
          code: 'invalid_encrypted_content',
        };
    } else if (!stored.has(id)) {
      yield {
        message: `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
        param: 'input',
        status: 404,
      };
    }
    const next = items[index + 1];
    const expected = after.get(id);
    const follows =
      next !== undefined &&
      isStrictOutputItem(next) &&
      (expected === undefined || next['id'] === undefined || next['id'] === expected);
    if (!follows)
      yield {
        message: `Item '${id}' of type 'reasoning' was provided without its required following item.`,
        param: 'input',
      };
  }
}

function isStrictOutputItem(item: JsonObject): boolean {
  const type = strictTypeOfItem(item);
  return type === 'message' ? item['role'] === 'assistant' : type === 'reasoning' || type.endsWith('_call');
}

function strictTypeOfItem(item: JsonObject): string {
  return item['type'] === undefined ? 'message' : rehearsalText(item['type']);
}

function* strictResponsesToolProblems(body: JsonObject): Generator<Problem> {
  const functions = rehearsalObjectsIn(body['tools']).filter((tool) => tool['type'] === 'function');
  for (const [index, tool] of rehearsalObjectsIn(body['tools']).entries()) {
    if (tool['type'] === undefined) yield strictMissing(`tools[${index}].type`);
    if (tool['type'] === 'function') yield* strictFunctionProblems(tool, `tools[${index}]`);
  }
  yield* strictNameProblems(functions.map((tool) => tool['name'] ?? ''));
}
