// The reference page of environment variables. A test compares it with the variables that the code reads.

import { code, page, table } from './markdown.ts';

const INTRO = 'A flag wins over a variable, and a variable over a config. An empty variable counts as unset.';

/** Each variable of drover and of the providers: what it sets, and the default. */
export const VARIABLES: readonly (readonly [name: string, sets: string, otherwise: string])[] = [
  [
    'ANTHROPIC_API_KEY',
    'The key for models `anthropic/…`. Without `--model`, the first key of this table that is set chooses the model.',
    'none',
  ],
  ['ANTHROPIC_BASE_URL', 'The address of that API', 'the provider’s own'],
  ['OPENAI_API_KEY', 'The key for models `openai/…` and `openai-chat/…`', 'none'],
  ['OPENAI_BASE_URL', 'The address of that API', 'the provider’s own'],
  ['DROVER_HOME', 'The folder of journals, workspaces and the server’s token', '`~/.drover`'],
  [
    'DROVER_LOG',
    'The level of diagnostics on stderr, or in the file of `--log`: `error`, `warn` (a lost thread, a repaired journal, a missing sandbox), `info` (beginnings and ends), `debug` (each request, call, wait and merge), `trace`',
    'none; `debug` with `--log`',
  ],
  [
    'DROVER_QUEUE_KEY',
    'Signs what a coordinator and its worker hosts send each other; the same on all of them',
    'none; required unless the queue is on this machine',
  ],
  [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'The collector to which runs send traces and metrics, as OTLP/HTTP JSON. The other `OTEL_EXPORTER_OTLP_*` variables for addresses, headers and the timeout count, too',
    'none: nothing is sent',
  ],
  ['TRACEPARENT', 'The trace that a run continues, by W3C Trace Context', 'none: a trace of its own'],
  ['DROVER_DEBUG', '`1` prints the stack of an internal error', 'off'],
  ['DROVER_CHARS_PER_TOKEN', 'Characters per token in estimates, 1 to 32', '`charsPerToken` of the config, or 4'],
  [
    'DROVER_TEXT_TOOL_CALL_RETRY_LIMIT',
    'How often drover discards an answer that ends with a tool call written as text and asks again, 0 to 10; 0 turns the detection off',
    '`textCallRetries` of the config, or 2',
  ],
];

const OTHERS =
  '`keyEnv` of a provider in your config names further variables for keys. drover also follows `HOME`, `PATH`, `XDG_CONFIG_HOME`, `CI` (requires a sandbox), `NO_COLOR`, `FORCE_COLOR`, `TERM`, `LANG`, `PAGER`, `VISUAL` and `EDITOR`, `GITHUB_ACTIONS` and `GITHUB_STEP_SUMMARY`.';

export function environmentPage(): string {
  const rows = VARIABLES.map(([name, sets, otherwise]) => [code(name), sets, otherwise]);
  return page('Environment variables', '`scripts/reference/environment-page.ts`', [
    INTRO,
    table(['variable', 'sets', 'default'], rows),
    OTHERS,
  ]);
}
