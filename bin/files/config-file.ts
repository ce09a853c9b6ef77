// The config file: its schema, from which its type, its reader, its JSON Schema and its reference page follow.
//
// Whether a project may set a key is decided in settings.ts.

import { z } from 'zod';
import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from '@drover/core/agent/limits';
import { CHARS_PER_TOKEN_DEFAULT } from '@drover/core/conversation/conversation';
import { UsageError } from '@drover/core/errors';
import { HOOK_MOMENTS } from '@drover/core/hooks/hook';
import type { Effect } from '@drover/core/permission/rules';
import { isAddress } from '../start/quantities.ts';
import { parseAuthor } from '../start/result-options.ts';
import { readServedToolRule } from '../permission/rule-names.ts';
import { parseSandboxHost, SANDBOX_MODES } from '../sandbox/hosts-and-modes.ts';
import type { ReadDocument } from '@drover/documents/read-document';
import { requireFileDocument } from './document.ts';
import { mcpEntries } from './mcp-file.ts';
import { duration, mapField, numberField, parsedField, text, texts, wholeNumberField } from './values.ts';

const address = parsedField(
  (written) => {
    if (isAddress(written)) return written;
    throw new UsageError(`'${written}' is not an http or https address`);
  },
  { pattern: '^[hH][tT][tT][pP][sS]?:', examples: ['https://api.example.com/v1'] },
);

const provider = z
  .strictObject({
    api: z.enum(['anthropic', 'openai', 'openai-chat']).describe('The API that the server speaks.'),
    baseUrl: address.describe('Where the server is.'),
    keyEnv: text.exactOptional().describe('The environment variable that holds the key. Default: no key is sent.'),
  })
  .transform(({ api, baseUrl, keyEnv }) => ({ api, baseUrl, keyEnv }));

const dollars = numberField(0, 1_000_000, 'US dollars per million tokens');
const price = z
  .strictObject({
    input: dollars.describe('For a million tokens of input.'),
    output: dollars.describe('For a million tokens of output.'),
    cacheRead: dollars.exactOptional().describe('For a million tokens read from the cache. Default: as input.'),
    cacheWrite: dollars.exactOptional().describe('For a million tokens written to the cache. Default: as input.'),
  })
  .transform(({ input, output, cacheRead = input, cacheWrite = input }) => ({ input, output, cacheRead, cacheWrite }));

const rulesField = (effect: Effect) => z.array(parsedField((written) => readServedToolRule(written, effect)));

const modelList = z.union([
  text.transform((name): readonly string[] => [name]),
  texts.min(1, { error: 'is empty; name at least one model' }),
]);

const timeouts = z.strictObject({
  headers: duration.exactOptional().describe('Until the headers of a response. Default: 2m.'),
  firstByte: duration.exactOptional().describe('Until its first byte. Default: 2m.'),
  silence: duration.exactOptional().describe('Between any two bytes. Default: 5m.'),
  progress: duration.exactOptional().describe('Between two bytes of the answer itself. Default: 20m.'),
});

const HOOK_POINTS = HOOK_MOMENTS.flatMap((moment) => [`before ${moment}`, `after ${moment}`] as const);

const hook = z.strictObject({
  at: z.enum(HOOK_POINTS).describe('When it runs. A hook before a merge is a gate.'),
  run: text.describe('The command.'),
  tools: parsedField(parseConfigPattern, { examples: ['shell|edit'] })
    .exactOptional()
    .describe('Tools whose calls it is for, as a regular expression for the whole name. Default: all tools.'),
  timeout: duration.exactOptional().describe('How long it may take. Default: 1m.'),
});

export const configSchema = z.strictObject({
  model: text
    .exactOptional()
    .describe('The model that is asked where --model does not say otherwise, as provider/name. Default: none.'),
  models: z
    .strictObject({
      plan: modelList.exactOptional().describe('The model that plans a run. Default: as model.'),
      work: modelList.exactOptional().describe('The model of the workers of a run. Default: as model.'),
      review: modelList
        .exactOptional()
        .describe('The model that reads what the tasks of a plan changed, as a last task. Default: no review.'),
    })
    .exactOptional()
    .describe(
      'Models of a run by role. In a list, each model is asked only if the one before stays unavailable after retries. --model, --plan-model and --work-model win over it. Default: model for plan and work, and no review.',
    ),
  providers: mapField(provider)
    .exactOptional()
    .describe(
      'Further servers, by the name that --model calls them by. api is anthropic, openai (Responses) or openai-chat (Chat Completions); keyEnv is the variable that holds the key, never the key itself. Default: none. anthropic, openai and openai-chat are known.',
    ),
  prices: mapField(price)
    .exactOptional()
    .describe(
      'US dollars per million tokens, by model, where drover does not know them or you pay others. Default: what is known of the model; cacheRead and cacheWrite cost what input does.',
    ),
  contextTokens: wholeNumberField(1_000, 100_000_000)
    .exactOptional()
    .describe('How many tokens a conversation may have before it is shortened. Default: what is known of the model.'),
  charsPerToken: numberField(1, 32)
    .exactOptional()
    .describe(
      `How many characters make a token, for estimates before a provider has counted; from then on its count corrects them. Default: ${CHARS_PER_TOKEN_DEFAULT}.`,
    ),
  workers: wholeNumberField(0, 128)
    .exactOptional()
    .describe('How many tasks of a run are worked on at a time. Default: twice the cores, at most 8.'),
  threads: wholeNumberField(0, 64)
    .exactOptional()
    .describe('How many threads the workers of a run share; 0 uses the main thread. Default: one per core.'),
  author: parsedField(parseAuthor, { examples: ['Ada Lovelace <ada@example.com>'] })
    .exactOptional()
    .describe("Author of the commits of a run, as 'Name <email>'. Default: user.name and user.email of git."),
  steps: wholeNumberField(1, 10_000)
    .exactOptional()
    .describe(
      `Maximum number of steps of an agent. Default: ${STEPS_MAX_DEFAULT}. The lower of yours and the project's applies.`,
    ),
  turns: wholeNumberField(1, 10_000)
    .exactOptional()
    .describe('The former name of steps, still accepted. If both are set, the lower one applies.'),
  textCallRetries: wholeNumberField(0, 10)
    .exactOptional()
    .describe(
      `How often an answer is discarded and asked for again because it ends with a tool call written as text. 0 turns the detection off. Default: ${TEXT_CALL_RETRIES_DEFAULT}.`,
    ),
  gates: texts
    .exactOptional()
    .describe(
      'Commands that must pass on the merged result. Default: none. In a project they are only proposed: drover names them, and runs those that you repeat with --gate.',
    ),
  setup: texts
    .exactOptional()
    .describe(
      'Commands that prepare each workspace before work or tests begin in it. They run in the sandbox, so name the hosts that they download from under net. Default: none.',
    ),
  ignore: z
    .array(parsedField(parseIgnorePattern))
    .exactOptional()
    .describe('What the searches of agents leave out, in patterns as in .gitignore. Default: none.'),
  sandbox: z
    .enum(SANDBOX_MODES)
    .exactOptional()
    .describe(
      'Whether commands of agents, gates and setup run in a sandbox: auto (where one works; otherwise every command of an agent is asked about), required, or off. Default: auto, and required in CI. A project may only require it.',
    ),
  net: z
    .array(parsedField(parseSandboxHost))
    .exactOptional()
    .describe(
      'Hosts that commands in the sandbox may reach, on ports 80 and 443 unless a port is given. *.example.com stands for all subdomains. Default: none.',
    ),
  writable: texts
    .exactOptional()
    .describe('Folders besides the workspace that commands in the sandbox may write to. Default: none.'),
  allow: rulesField('allow')
    .exactOptional()
    .describe(
      'Calls that agents may make without approval. Default: reading, writing in the workspace, and shell commands inside the sandbox.',
    ),
  ask: rulesField('ask')
    .exactOptional()
    .describe(
      'Calls to ask about each time, and to refuse if there is no terminal to ask on. Default: everything that is not allowed.',
    ),
  deny: rulesField('deny')
    .exactOptional()
    .describe(
      'Calls that are never allowed, also with --yes. In the sandbox a denied path is denied to every program, and a denied shell command is a tripwire: a script can hide one. Default: none.',
    ),
  mcp: mcpEntries
    .exactOptional()
    .describe(
      'MCP servers whose tools agents may use, by name. Default: none; those of an approved .mcp.json are added.',
    ),
  bell: z
    .boolean()
    .exactOptional()
    .describe('Whether the dashboard rings the bell of the terminal when a question appears. Default: true.'),
  hooks: z
    .array(hook)
    .exactOptional()
    .describe(
      'Commands that drover runs before and after what it does, with JSON on standard input. Exit code 2 blocks, with standard error as the reason. Yours run outside the sandbox, those of an approved project inside it. Default: none.',
    ),
  timeouts: timeouts
    .exactOptional()
    .describe(
      'How long to wait for each sign of life of a provider: the headers of its response, its first byte, any byte, and a byte of the answer. Default: as below.',
    ),
});

/** The content of a config file. Durations are in milliseconds. */
export type Config = Readonly<z.output<typeof configSchema>>;

/** `place` is file:line:column of a key. */
export type ReadConfig = Pick<ReadDocument<Config>, 'place'> & { readonly config: Config };

export type ProviderConfig = Readonly<z.output<typeof provider>>;

export type Timeouts = Readonly<z.output<typeof timeouts>>;

/** Throws UsageError for mistakes, and for characters that are invisible to a reader of the file. */
export function parseConfigFile(written: string, file: string): ReadConfig {
  checkConfigKeysSeen(written, file);
  const { value: config, place } = requireFileDocument(written, file, { what: 'the config', schema: configSchema });
  return { config, place };
}

// Control characters, marks that reverse the writing direction, characters without width. A line may end with CR LF.
const UNSEEN = /(?!\r?\n|\t)[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const UNSEEN_TOLD_MAX = 10;

function checkConfigKeysSeen(written: string, file: string): void {
  const found = [...written.matchAll(UNSEEN)].slice(0, UNSEEN_TOLD_MAX).map(({ 0: char, index }) => {
    const before = written.slice(0, index).split('\n');
    const code = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const place = `${file}:${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
    return `${place}: the invisible character U+${code} may not stand in a config; remove it`;
  });
  if (found.length > 0) throw new UsageError(found.join('\n'));
}

function parseConfigPattern(written: string): string {
  try {
    return new RegExp(written) instanceof RegExp ? written : '';
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`'${written}' is no regular expression for names of tools`);
  }
}

/** Patterns as in .gitignore, without negation. */
function parseIgnorePattern(written: string): string {
  if (written.startsWith('!'))
    throw new UsageError(`'${written}' begins with !; a pattern here only says what to leave out`);
  if (written.split('[').length !== written.split(']').length)
    throw new UsageError(`'${written}' has an [ without its ]`);
  return written;
}
