// The requests that the OpenAI Chat Completions API refuses, with its error messages.

import { isList, isObject, objectsIn, textOf, type Json, type JsonObject } from '../json.ts';
import type { Refusal } from '../wire/wire.ts';
import {
  emptyList,
  functionProblems,
  missing,
  nameProblems,
  refusalOf,
  tooLong,
  unsupported,
  wrongType,
  type Problem,
} from './openai.ts';

const CALL_ID_CHARS_MAX = 40;
const ROLES = ['system', 'assistant', 'user', 'function', 'tool', 'developer'];
const REQUEST_KEYS = new Set(
  (
    'messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata ' +
    'modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options ' +
    'prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream ' +
    'stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options'
  ).split(' '),
);

export function chatProblem(body: JsonObject): Refusal | undefined {
  return refusalOf(problems(body).next().value);
}

function* problems(body: JsonObject): Generator<Problem, undefined> {
  const unknown = Object.keys(body).find((key) => !REQUEST_KEYS.has(key));
  if (unknown !== undefined) yield { message: `Unrecognized request argument supplied: ${unknown}` };
  if (typeof body['model'] !== 'string' || body['model'] === '')
    yield { message: 'you must provide a model parameter' };
  const messages = body['messages'];
  if (messages === undefined) yield missing('messages');
  if (!isList(messages)) return void (yield wrongType('messages', 'an array of objects', messages));
  if (messages.length === 0) yield emptyList('messages');
  for (const [index, message] of messages.entries()) {
    if (isObject(message)) yield* messageProblems(message, index);
    else yield wrongType(`messages[${index}]`, 'an object', message);
  }
  yield* pairProblems(objectsIn(messages));
  yield* toolProblems(body);
  if (body['stream_options'] !== undefined && body['stream'] !== true)
    yield {
      message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      param: 'stream_options',
    };
}

function* messageProblems(message: JsonObject, index: number): Generator<Problem> {
  const { role, content } = message;
  const calls = message['tool_calls'];
  if (role === undefined) yield missing(`messages[${index}].role`);
  if (typeof role !== 'string' || !ROLES.includes(role)) yield unsupported(`messages[${index}].role`, role, ROLES);
  if (calls !== undefined) {
    if (!isList(calls)) return yield wrongType(`messages[${index}].tool_calls`, 'an array of objects', calls);
    if (calls.length === 0) yield emptyList(`messages[${index}].tool_calls`);
    for (const [place, call] of objectsIn(calls).entries())
      yield* callProblems(call, `messages[${index}].tool_calls[${place}]`);
  }
  const mayLackContent = role === 'assistant' && calls !== undefined;
  if ((content === undefined || content === null) && !mayLackContent)
    yield {
      message: "Invalid value for 'content': expected a string, got null.",
      param: `messages.[${index}].content`,
    };
  if (isList(content) && content.length === 0) yield emptyList(`messages[${index}].content`);
  if (role === 'tool') {
    const id = message['tool_call_id'];
    if (typeof id !== 'string') yield missing(`messages[${index}].tool_call_id`);
    else if (id.length > CALL_ID_CHARS_MAX)
      yield tooLong(`messages[${index}].tool_call_id`, CALL_ID_CHARS_MAX, id.length);
  }
}

function* callProblems(call: JsonObject, at: string): Generator<Problem> {
  const { id, type } = call;
  if (typeof id !== 'string') return yield missing(`${at}.id`);
  if (id.length > CALL_ID_CHARS_MAX) yield tooLong(`${at}.id`, CALL_ID_CHARS_MAX, id.length);
  if (type === undefined) yield missing(`${at}.type`);
  if (type !== 'function') return;
  const called = call['function'];
  if (!isObject(called)) return yield missing(`${at}.function`);
  if (typeof called['name'] !== 'string') yield missing(`${at}.function.name`);
  if (typeof called['arguments'] !== 'string')
    yield wrongType(`${at}.function.arguments`, 'a string', called['arguments']);
}

function* pairProblems(messages: readonly JsonObject[]): Generator<Problem> {
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message['role'] === 'tool') {
      if (!open.delete(textOf(message['tool_call_id'])))
        yield {
          message:
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          param: `messages.[${index}].role`,
        };
      continue;
    }
    yield* openProblems(open, index);
    const ids = objectsIn(message['tool_calls']).map(({ id }) => textOf(id));
    open = new Set(ids);
    const twice = ids.find((id, place) => ids.indexOf(id) !== place);
    if (twice !== undefined)
      yield {
        message: `Invalid parameter: Duplicate value for 'tool_call_id' of '${twice}' in message with 'tool_calls'.`,
        param: `messages.[${index}].tool_calls`,
      };
  }
  yield* openProblems(open, messages.length);
}

function* openProblems(open: ReadonlySet<string>, index: number): Generator<Problem> {
  if (open.size > 0)
    yield {
      message: `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
      param: `messages.[${index}].role`,
    };
}

function* toolProblems(body: JsonObject): Generator<Problem> {
  const tools: Json | undefined = body['tools'];
  if (tools === undefined) {
    if (body['tool_choice'] !== undefined)
      yield {
        message: "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        param: 'tool_choice',
      };
    if (body['parallel_tool_calls'] !== undefined)
      yield {
        message:
          "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
        param: 'parallel_tool_calls',
      };
    return;
  }
  if (!isList(tools)) return yield wrongType('tools', 'an array of objects', tools);
  if (tools.length === 0) yield emptyList('tools');
  const functions = objectsIn(tools).map((tool) => tool['function']);
  for (const [index, declared] of functions.entries()) {
    if (isObject(declared)) yield* functionProblems(declared, `tools[${index}].function`);
    else yield missing(`tools[${index}].function`);
  }
  yield* nameProblems(functions.map((declared) => (isObject(declared) ? (declared['name'] ?? '') : '')));
}
