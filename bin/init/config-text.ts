// The config files that drover init writes: every key there is, with what it does and its default, and
// nothing set. A key that is added to the config has to be described here, or this does not compile.

import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from '@drover/core/agent/limits';
import { CHARS_PER_TOKEN_DEFAULT } from '@drover/core/conversation/conversation';
import type { Config } from '../config-file.ts';
import { projectKeys } from '../settings.ts';
import { wrapped } from '../views/word-wrap.ts';

const COMMENT_COLUMNS = 98;

/** `lines` are what to write in order to set it. */
type Entry = { readonly about: string; readonly lines: readonly string[] };

const entries = (gates: readonly string[]): Readonly<Record<keyof Config, Entry>> => ({
  model: {
    about: 'The model that is asked where --model does not say otherwise, as provider/name. Default: none.',
    lines: ['model: anthropic/claude-sonnet-4-5'],
  },
  providers: {
    about:
      'Further servers, by the name that --model calls them by. api is anthropic, openai (Responses) or openai-chat (Chat Completions); keyEnv is the variable that holds the key, never the key itself. Default: none. anthropic, openai and openai-chat are known.',
    lines: [
      'providers:',
      "  local: { api: openai-chat, baseUrl: 'http://127.0.0.1:8080/v1' }",
      "  deepseek: { api: openai-chat, baseUrl: 'https://api.deepseek.com', keyEnv: DEEPSEEK_API_KEY }",
    ],
  },
  prices: {
    about:
      'US dollars per million tokens, by model, where drover does not know them or you pay others. Default: what is known of the model; cacheRead and cacheWrite cost what input does.',
    lines: ['prices:', '  local/qwen3-coder: { input: 0, output: 0 }'],
  },
  contextTokens: {
    about: 'How many tokens a conversation may have before it is shortened. Default: what is known of the model.',
    lines: ['contextTokens: 200000'],
  },
  charsPerToken: {
    about: `How many characters make a token, for estimates before a provider has counted; from then on its count corrects them. Default: ${CHARS_PER_TOKEN_DEFAULT}.`,
    lines: [`charsPerToken: ${CHARS_PER_TOKEN_DEFAULT}`],
  },
  workers: {
    about: 'How many tasks of a run are worked on at a time. Default: twice the cores, at most 8.',
    lines: ['workers: 4'],
  },
  turns: {
    about: `How many steps an agent may take. Default: ${STEPS_MAX_DEFAULT}. The lower of yours and the project's holds.`,
    lines: [`turns: ${STEPS_MAX_DEFAULT}`],
  },
  textCallRetries: {
    about: `How often an answer is discarded and asked for again because it ends with a tool call written as text. 0 turns the detection off. Default: ${TEXT_CALL_RETRIES_DEFAULT}.`,
    lines: [`textCallRetries: ${TEXT_CALL_RETRIES_DEFAULT}`],
  },
  gates: {
    about:
      'Commands that must pass on the merged result. Default: none. In a project they are only proposed: drover names them, and runs those that you repeat with --gate.',
    lines: [`gates: [${(gates.length === 0 ? ['make test'] : gates).map(quoted).join(', ')}]`],
  },
  setup: {
    about:
      'Commands that prepare each workspace before work or tests begin in it. They run in the sandbox, so name the hosts that they download from under net. Default: none.',
    lines: ["setup: ['pnpm install']"],
  },
  ignore: {
    about: 'What the searches of agents leave out, in patterns as in .gitignore. Default: none.',
    lines: ["ignore: [dist, '*.min.js']"],
  },
  sandbox: {
    about:
      'Whether commands of agents, gates and setup run in a sandbox: auto (where one works; otherwise every command of an agent is asked about), required, or off. Default: auto, and required in CI. A project may only require it.',
    lines: ['sandbox: required'],
  },
  net: {
    about:
      'Hosts that commands in the sandbox may reach, on ports 80 and 443 unless a port is given. *.example.com stands for all subdomains. Default: none.',
    lines: ["net: ['packages.example.com']"],
  },
  writable: {
    about: 'Folders besides the workspace that commands in the sandbox may write to. Default: none.',
    lines: ["writable: ['/var/cache/builds']"],
  },
  allow: {
    about:
      'Calls that agents may make without approval. Default: reading, writing in the workspace, and shell commands inside the sandbox.',
    lines: ["allow: ['shell(pnpm test*)', 'shell(pnpm lint*)']"],
  },
  ask: {
    about:
      'Calls to ask about each time, and to refuse if there is no terminal to ask on. Default: everything that is not allowed.',
    lines: ["ask: ['write(migrations/**)']"],
  },
  deny: {
    about:
      'Calls that are never allowed, also with --yes. In the sandbox a denied path is denied to every program, and a denied shell command is a tripwire: a script can hide one. Default: none.',
    lines: ["deny: ['write(**/*.lock)', 'shell(git push*)']"],
  },
  timeouts: {
    about:
      'How long to wait for each sign of life of a provider: the headers of its response, its first byte, any byte, and a byte of the answer. Default: as below.',
    lines: ['timeouts: { headers: 2m, firstByte: 2m, silence: 5m, progress: 20m }'],
  },
});

export function userConfig(): string {
  const head = 'Your defaults for drover. Flags win over them, and they win over what a project says.';
  return configOf(head, Object.values(entries([])));
}

export function projectConfig(gates: readonly string[]): string {
  const all = entries(gates);
  const head =
    'What this project would like of drover. It can make drover do less, never more: models, keys, addresses and what is allowed are for each user to say (drover init --user).';
  return configOf(
    head,
    (Object.keys(all) as (keyof Config)[]).filter((key) => projectKeys.includes(key)).map((key) => all[key]),
  );
}

function configOf(head: string, described: readonly Entry[]): string {
  const how = 'Take the # away from what you want to set.';
  const blocks = described.map(({ about, lines }) => [comment(about), ...lines.map((line) => `#${line}`)].join('\n'));
  return `${[`${comment(head)}\n${comment(how)}`, ...blocks].join('\n\n')}\n`;
}

function comment(text: string): string {
  return wrapped(text, COMMENT_COLUMNS).replaceAll(/^/gm, '# ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
