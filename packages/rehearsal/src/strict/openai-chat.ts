// The requests that the OpenAI Chat Completions API refuses, with its error messages.

import {
  isRehearsalList,
  isRehearsalObject,
  rehearsalObjectsIn,
  rehearsalText,
  type Json,
  type JsonObject,
} from '../json.ts';
import type { Refusal } from '../wire/wire.ts';
import {
  strictEmptyList,
  strictFunctionProblems,
  strictMissing,
  strictNameProblems,
  strictRefusalOf,
  strictTooLong,
  strictUnsupported,
  strictWrongType,
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

export function strictChatProblem(body: JsonObject): Refusal | undefined {
  return strictRefusalOf(strictChatProblems(body).next().value);
}

function* strictChatProblems(body: JsonObject): Generator<Problem, undefined> {
  const unknown = Object.keys(body).find((key) => !REQUEST_KEYS.has(key));
  if (unknown !== undefined) yield { message: `Unrecognized request argument supplied: ${unknown}` };
  if (typeof body['model'] !== 'string' || body['model'] === '')
    yield { message: 'you must provide a model parameter' };
  const messages = body['messages'];
  if (messages === undefined) yield strictMissing('messages');
  if (!isRehearsalList(messages)) return void (yield strictWrongType('messages', 'an array of objects', messages));
  if (messages.length === 0) yield strictEmptyList('messages');
  for (const [index, message] of messages.entries()) {
    if (isRehearsalObject(message)) yield* strictChatMessageProblems(message, index);
    else yield strictWrongType(`messages[${index}]`, 'an object', message);
  }
  yield* strictChatPairProblems(rehearsalObjectsIn(messages));
  yield* strictChatToolProblems(body);
  if (body['stream_options'] !== undefined && body['stream'] !== true)
    yield {
      message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      param: 'stream_options',
    };
}

function* strictChatMessageProblems(message: JsonObject, index: number): Generator<Problem> {
  const { role, content } = message;
  const calls = message['tool_calls'];
  if (role === undefined) yield strictMissing(`messages[${index}].role`);
  if (typeof role !== 'string' || !ROLES.includes(role))
    yield strictUnsupported(`messages[${index}].role`, role, ROLES);
  if (calls !== undefined) {
    if (!isRehearsalList(calls))
      return yield strictWrongType(`messages[${index}].tool_calls`, 'an array of objects', calls);
    if (calls.length === 0) yield strictEmptyList(`messages[${index}].tool_calls`);
    for (const [place, call] of rehearsalObjectsIn(calls).entries())
      yield* strictChatCallProblems(call, `messages[${index}].tool_calls[${place}]`);
  }
  const mayLackContent = role === 'assistant' && calls !== undefined;
  if ((content === undefined || content === null) && !mayLackContent)
    yield {
      message: "Invalid value for 'content': expected a string, got null.",
      param: `messages.[${index}].content`,
    };
  if (isRehearsalList(content) && content.length === 0) yield strictEmptyList(`messages[${index}].content`);
  if (role === 'tool') {
    const id = message['tool_call_id'];
    if (typeof id !== 'string') yield strictMissing(`messages[${index}].tool_call_id`);
    else if (id.length > CALL_ID_CHARS_MAX)
      yield strictTooLong(`messages[${index}].tool_call_id`, CALL_ID_CHARS_MAX, id.length);
  }
}

function* strictChatCallProblems(call: JsonObject, at: string): Generator<Problem> {
  const { id, type } = call;
  if (typeof id !== 'string') return yield strictMissing(`${at}.id`);
  if (id.length > CALL_ID_CHARS_MAX) yield strictTooLong(`${at}.id`, CALL_ID_CHARS_MAX, id.length);
  if (type === undefined) yield strictMissing(`${at}.type`);
  if (type !== 'function') return;
  const called = call['function'];
  if (!isRehearsalObject(called)) return yield strictMissing(`${at}.function`);
  if (typeof called['name'] !== 'string') yield strictMissing(`${at}.function.name`);
  if (typeof called['arguments'] !== 'string')
    yield strictWrongType(`${at}.function.arguments`, 'a string', called['arguments']);
}

function* strictChatPairProblems(messages: readonly JsonObject[]): Generator<Problem> {
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message['role'] === 'tool') {
      if (!open.delete(rehearsalText(message['tool_call_id'])))
        yield {
          message:
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          param: `messages.[${index}].role`,
        };
      continue;
    }
    yield* strictChatOpenProblems(open, index);
    const ids = rehearsalObjectsIn(message['tool_calls']).map(({ id }) => rehearsalText(id));
    open = new Set(ids);
    const twice = ids.find((id, place) => ids.indexOf(id) !== place);
    if (twice !== undefined)
      yield {
        message: `Invalid parameter: Duplicate value for 'tool_call_id' of '${twice}' in message with 'tool_calls'.`,
        param: `messages.[${index}].tool_calls`,
      };
  }
  yield* strictChatOpenProblems(open, messages.length);
}

function* strictChatOpenProblems(open: ReadonlySet<string>, index: number): Generator<Problem> {
  if (open.size > 0)
    yield {
      message: `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
      param: `messages.[${index}].role`,
    };
}

function* strictChatToolProblems(body: JsonObject): Generator<Problem> {
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
  if (!isRehearsalList(tools)) return yield strictWrongType('tools', 'an array of objects', tools);
  if (tools.length === 0) yield strictEmptyList('tools');
  const functions = rehearsalObjectsIn(tools).map((tool) => tool['function']);
  for (const [index, declared] of functions.entries()) {
    if (isRehearsalObject(declared)) yield* strictFunctionProblems(declared, `tools[${index}].function`);
    else yield strictMissing(`tools[${index}].function`);
  }
  yield* strictNameProblems(functions.map((declared) => (isRehearsalObject(declared) ? (declared['name'] ?? '') : '')));
}
