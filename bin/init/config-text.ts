// The config files that drover init writes: all keys, each with its description from the schema and a commented
// example. A key added to the schema needs an example here, or this does not compile.

import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from '@drover/core/agent/limits';
import { CHARS_PER_TOKEN_DEFAULT } from '@drover/core/conversation/conversation';
import { type Config, configSchema } from '../files/config-file.ts';
import { projectKeys } from '../start/settings.ts';
import { wrapText } from '../views/text/word-wrap.ts';

const COMMENT_COLUMNS = 98;

/** All keys except former names, which a new config should not use. */
type Key = Exclude<keyof Config, 'turns'>;

/** Example lines for each key. */
const initConfigExamples = (gates: readonly string[]): Readonly<Record<Key, readonly string[]>> => ({
  model: ['model: anthropic/claude-sonnet-4-5'],
  models: ['models:', '  plan: anthropic/claude-opus-4-5', '  work: [anthropic/claude-sonnet-4-5, openai/gpt-5]'],
  providers: [
    'providers:',
    "  local: { api: openai-chat, baseUrl: 'http://127.0.0.1:8080/v1' }",
    "  deepseek: { api: openai-chat, baseUrl: 'https://api.deepseek.com', keyEnv: DEEPSEEK_API_KEY }",
  ],
  prices: ['prices:', '  local/qwen3-coder: { input: 0, output: 0 }'],
  contextTokens: ['contextTokens: 200000'],
  charsPerToken: [`charsPerToken: ${CHARS_PER_TOKEN_DEFAULT}`],
  workers: ['workers: 4'],
  threads: ['threads: 2'],
  author: ['author: Ada Lovelace <ada@example.com>'],
  steps: [`steps: ${STEPS_MAX_DEFAULT}`],
  textCallRetries: [`textCallRetries: ${TEXT_CALL_RETRIES_DEFAULT}`],
  gates: [`gates: [${(gates.length === 0 ? ['make test'] : gates).map(quoteConfigValue).join(', ')}]`],
  setup: ["setup: ['pnpm install']"],
  ignore: ["ignore: [dist, '*.min.js']"],
  sandbox: ['sandbox: required'],
  net: ["net: ['packages.example.com']"],
  writable: ["writable: ['/var/cache/builds']"],
  allow: ["allow: ['shell(pnpm test*)', 'shell(pnpm lint*)']"],
  ask: ["ask: ['write(migrations/**)']"],
  deny: ["deny: ['write(**/*.lock)', 'shell(git push*)']"],
  mcp: ['mcp:', '  memory: { command: mcp-server-memory }', "  tracker: { url: 'https://mcp.example.com' }"],
  bell: ['bell: false'],
  hooks: ['hooks:', '  - { at: before call, run: ./check-call.sh, tools: shell, timeout: 10s }'],
  timeouts: ['timeouts: { headers: 2m, firstByte: 2m, silence: 5m, progress: 20m }'],
});

export function userConfigText(): string {
  const head = 'Your defaults for drover. Flags win over them, and they win over what a project says.';
  return initConfigText(head, initConfigExamples([]), () => true);
}

export function projectConfigText(gates: readonly string[]): string {
  const head =
    'What this project would like of drover. It can make drover do less, never more: models, keys, addresses and what is allowed are for each user to say (drover init --user).';
  return initConfigText(head, initConfigExamples(gates), (key) => projectKeys.includes(key));
}

type Examples = ReturnType<typeof initConfigExamples>;

function initConfigText(head: string, lines: Examples, isWanted: (key: Key) => boolean): string {
  const how = 'Take the # away from what you want to set.';
  const keys = (Object.keys(lines) as Key[]).filter(isWanted);
  const blocks = keys.map((key) =>
    [commentConfigLine(configSchema.shape[key].description ?? ''), ...lines[key].map((line) => `#${line}`)].join('\n'),
  );
  return `${[`${commentConfigLine(head)}\n${commentConfigLine(how)}`, ...blocks].join('\n\n')}\n`;
}

function commentConfigLine(text: string): string {
  return wrapText(text, COMMENT_COLUMNS).replaceAll(/^/gm, '# ');
}

function quoteConfigValue(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
