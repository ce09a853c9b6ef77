// The agents that drover is compared with: how each is started on one prompt, with its requests sent to the scripted
// model and everything it would send elsewhere switched off.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dist, root } from '../run/programs.ts';

export type Peer = {
  readonly name: string;
  /** The package to install; absent for programs of this repository. */
  readonly from?: string;
  readonly tool: string; // the name of its shell tool, for the script
  readonly args: Readonly<Record<string, unknown>>; // of a call of that tool
  /** Writes its configuration into a home of its own. Returns what it is started with. */
  readonly start: (place: Place) => Start;
};

export type Place = { readonly home: string; readonly url: string; readonly bin: string };
export type Start = { readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> };

const MODEL = 'scripted';
const ANTHROPIC = 'anthropic/claude-sonnet-4-5';

export const PEERS: readonly Peer[] = [
  {
    name: 'bare',
    tool: 'shell',
    args: { command: 'true' },
    start: ({ url }) => ({
      argv: [process.execPath, join(root, 'bench', 'bare', 'agent.mjs'), 'go'],
      env: { ANTHROPIC_BASE_URL: url },
    }),
  },
  // The others have no sandbox, or work without theirs here.
  drover('drover', 'off'),
  drover('contained', 'required'),
  {
    name: 'codex',
    from: '@openai/codex',
    tool: 'exec_command',
    args: { cmd: 'true' },
    start: ({ url, home, bin }) => {
      write(home, '.codex/config.toml', [
        `model = "${MODEL}"`,
        'model_provider = "rehearsal"',
        'check_for_update_on_startup = false',
        '[analytics]',
        'enabled = false',
        '[model_providers.rehearsal]',
        'name = "rehearsal"',
        `base_url = "${url}/v1"`,
        'wire_api = "responses"',
        'env_key = "OPENAI_API_KEY"',
      ]);
      const flags = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
      return { argv: [join(bin, 'codex'), 'exec', ...flags, 'go'], env: { OPENAI_API_KEY: 'x' } };
    },
  },
  {
    name: 'pi',
    from: '@mariozechner/pi-coding-agent',
    tool: 'bash',
    args: { command: 'true' },
    start: ({ url, home, bin }) => {
      const models = [{ id: MODEL, contextWindow: 1_000_000, maxTokens: 64_000 }];
      const provider = { baseUrl: url, api: 'anthropic-messages', apiKey: 'x', models };
      write(home, '.pi/agent/models.json', [JSON.stringify({ providers: { rehearsal: provider } })]);
      const argv = [join(bin, 'pi'), '--provider', 'rehearsal', '--model', MODEL, '-p', 'go'];
      return { argv, env: { PI_OFFLINE: '1', PI_TELEMETRY: '0', PI_SKIP_VERSION_CHECK: '1' } };
    },
  },
  {
    name: 'opencode',
    from: 'opencode-ai',
    tool: 'bash',
    args: { command: 'true', description: 'nothing' },
    start: ({ url, home, bin }) => {
      const options = { baseURL: `${url}/v1`, apiKey: 'x' };
      write(home, '.config/opencode/opencode.json', [
        JSON.stringify({
          autoupdate: false,
          share: 'disabled',
          permission: { bash: 'allow' },
          small_model: ANTHROPIC,
          provider: { anthropic: { options } },
        }),
      ]);
      const env = { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_SHARE: '1' };
      return { argv: [join(bin, 'opencode'), 'run', '--model', ANTHROPIC, '--title', 'go', 'go'], env };
    },
  },
];

function drover(name: string, sandbox: 'off' | 'required'): Peer {
  const exec = [join(dist, 'drover.cjs'), 'exec', '--model', 'anthropic/any', '--json', '--yes'];
  return {
    name,
    tool: 'shell',
    args: { command: 'true' },
    start: ({ url, home }) => ({
      argv: [process.execPath, ...exec, '--sandbox', sandbox, 'go'],
      env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'x', DROVER_HOME: join(home, 'state') },
    }),
  };
}

function write(home: string, path: string, text: readonly string[]): void {
  mkdirSync(join(home, path, '..'), { recursive: true });
  writeFileSync(join(home, path), `${text.join('\n')}\n`);
}
