// The errors of the Anthropic Messages API for requests of the wrong form.

import {
  isRehearsalList,
  isRehearsalObject,
  showRehearsalValue,
  rehearsalText,
  type Json,
  type JsonObject,
} from '../json.ts';

const ID_PATTERN = /^[a-zA-Z0-9_-]+$/;
const TOOL_NAME_PATTERN = /^[a-zA-Z0-9_-]{1,128}$/;

const REQUEST_KEYS = strictKeys(
  'max_tokens messages model cache_control container context_management diagnostics inference_geo mcp_servers metadata',
  'output_config service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p',
  'user_profile_id workspace_id',
);
const TOOL_KEYS = strictKeys(
  'input_schema name allowed_callers cache_control defer_loading description eager_input_streaming input_examples',
  'strict type',
);
/** The block types that a request may contain, and the fields of those that are checked. */
const BLOCK_KEYS: Readonly<Record<string, ReadonlySet<string> | undefined>> = {
  bash_code_execution_tool_result: undefined,
  code_execution_tool_result: undefined,
  container_upload: undefined,
  document: strictKeys('source type cache_control citations context title'),
  image: strictKeys('source type cache_control transformations'),
  redacted_thinking: strictKeys('data type'),
  search_result: undefined,
  server_tool_use: undefined,
  text: strictKeys('text type cache_control citations'),
  text_editor_code_execution_tool_result: undefined,
  thinking: strictKeys('signature thinking type'),
  tool_result: strictKeys('tool_use_id type cache_control content is_error toolset_name'),
  tool_search_tool_result: undefined,
  tool_use: strictKeys('id input name type cache_control caller toolset_name'),
  web_fetch_tool_result: undefined,
  web_search_tool_result: undefined,
};
const RESULT_BLOCKS = ['text', 'image', 'search_result', 'document', 'tool_reference'];

export function* strictShapeProblems(body: JsonObject): Generator<string> {
  for (const field of ['model', 'messages', 'max_tokens'])
    if (body[field] === undefined) yield `${field}: Field required`;
  yield* strictExtraKeys(body, REQUEST_KEYS, '');
  const { max_tokens: outputTokens, messages } = body;
  if (typeof outputTokens !== 'number') yield 'max_tokens: Input should be a valid integer';
  else if (outputTokens < 1) yield 'max_tokens: Input should be greater than or equal to 1';
  if (!isRehearsalList(messages)) return yield 'messages: Input should be a valid list';
  if (messages.length === 0) yield 'messages: at least one message is required';
  for (const [index, message] of messages.entries()) yield* strictMessageShape(message, `messages.${index}`);
  yield* strictToolShapes(body['tools']);
}

function* strictMessageShape(message: Json, at: string): Generator<string> {
  if (!isRehearsalObject(message)) return yield `${at}: Input should be a valid dictionary`;
  const { role, content } = message;
  yield* strictExtraKeys(message, MESSAGE_KEYS, `${at}.`);
  if (role !== 'user' && role !== 'assistant' && role !== 'system')
    yield `messages: Unexpected role "${showRehearsalValue(role)}". Allowed roles are "user" or "assistant"`;
  if (content === undefined) yield `${at}.content: Field required`;
  if (typeof content === 'string') return;
  if (!isRehearsalList(content)) return yield `${at}.content: Input should be a valid list`;
  for (const [index, block] of content.entries()) yield* strictBlockShape(block, `${at}.content.${index}`);
}

const MESSAGE_KEYS = strictKeys('role content');

function* strictBlockShape(block: Json, at: string): Generator<string> {
  if (!isRehearsalObject(block)) return yield `${at}: Input should be a valid dictionary`;
  const type = block['type'];
  if (typeof type !== 'string') return yield `${at}.type: Field required`;
  if (!Object.hasOwn(BLOCK_KEYS, type)) return yield `${at}: ${strictUnknownTag(type, Object.keys(BLOCK_KEYS))}`;
  const known = BLOCK_KEYS[type];
  if (known !== undefined) yield* strictExtraKeys(block, known, `${at}.${type}.`);
  const texts = TEXT_FIELDS[type] ?? [];
  for (const field of texts)
    if (typeof block[field] !== 'string')
      yield `${at}.${type}.${field}: ${block[field] === undefined ? 'Field required' : 'Input should be a valid string'}`;
  if (type === 'tool_use') {
    if (!ID_PATTERN.test(rehearsalText(block['id'])))
      yield `${at}.tool_use.id: String should match pattern '${ID_PATTERN.source}'`;
    if (!isRehearsalObject(block['input'])) yield `${at}.tool_use.input: Input should be a valid dictionary`;
  }
  if (type === 'tool_result') yield* strictResultShape(block, at);
}

const TEXT_FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  thinking: ['thinking'],
  redacted_thinking: ['data'],
  tool_use: ['id', 'name'],
  tool_result: ['tool_use_id'],
};

function* strictResultShape(block: JsonObject, at: string): Generator<string> {
  const content = block['content'];
  if (!ID_PATTERN.test(rehearsalText(block['tool_use_id'])))
    yield `${at}.tool_result.tool_use_id: String should match pattern '${ID_PATTERN.source}'`;
  const empty = content === undefined || content === '' || (isRehearsalList(content) && content.length === 0);
  if (empty && block['is_error'] === true) yield `${at}.tool_result: content cannot be empty if \`is_error\` is true`;
  if (!isRehearsalList(content)) return;
  for (const [index, part] of content.entries()) {
    const type = isRehearsalObject(part) ? part['type'] : undefined;
    if (typeof type !== 'string' || !RESULT_BLOCKS.includes(type))
      yield `${at}.tool_result.content.${index}: ${strictUnknownTag(showRehearsalValue(type), RESULT_BLOCKS)}`;
  }
}

function* strictToolShapes(tools: Json | undefined): Generator<string> {
  if (tools === undefined) return;
  if (!isRehearsalList(tools)) return yield 'tools: Input should be a valid list';
  const names = new Set<Json | undefined>();
  for (const [index, tool] of tools.entries()) {
    if (!isRehearsalObject(tool)) return yield `tools.${index}: Input should be a valid dictionary`;
    // Tools that the server runs have their own type.
    if (tool['type'] === undefined || tool['type'] === 'custom') {
      const at = `tools.${index}.custom`;
      yield* strictExtraKeys(tool, TOOL_KEYS, `${at}.`);
      if (!TOOL_NAME_PATTERN.test(rehearsalText(tool['name'])))
        yield `${at}.name: String should match pattern '${TOOL_NAME_PATTERN.source}'`;
      if (!isRehearsalObject(tool['input_schema'])) yield `${at}.input_schema: Field required`;
      else if (tool['input_schema']['type'] !== 'object')
        yield `${at}.input_schema.type: ${tool['input_schema']['type'] === undefined ? 'Field required' : "Input should be 'object'"}`;
    }
    if (names.has(tool['name'])) yield 'tools: Tool names must be unique.';
    names.add(tool['name']);
  }
}

function strictUnknownTag(tag: string, expected: readonly string[]): string {
  return `Input tag '${tag}' found using 'type' does not match any of the expected tags: ${expected.map((name) => `'${name}'`).join(', ')}`;
}

function* strictExtraKeys(value: JsonObject, known: ReadonlySet<string>, at: string): Generator<string> {
  for (const key of Object.keys(value)) if (!known.has(key)) yield `${at}${key}: Extra inputs are not permitted`;
}

function strictKeys(...words: readonly string[]): ReadonlySet<string> {
  return new Set(words.join(' ').split(' '));
}
