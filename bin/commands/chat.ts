// drover chat: a conversation between the user and one agent.

import { resolve } from 'node:path';
import { STEPS_MAX_DEFAULT } from '@drover/core/agent/limits';
import { UsageError } from '@drover/core/errors';
import { defineCommand, flagOption, valueOption } from '../start/command.ts';
import { openDiagnostics } from '../diagnostics.ts';
import { agentOptions, sessionWork } from '../session/agent-options.ts';
import { openBegunSession } from '../session/begun.ts';
import { exitCode } from '../start/exit-code.ts';
import type { Io } from '../io.ts';
import { parseSessionName } from '../history/id.ts';

const { model, cwd, log, allow, ask, deny, yes, sandbox, net, writable, steps, timeout, budget, mcp } = agentOptions;
const { 'trust-project': trustProject } = agentOptions;

export const chat = defineCommand({
  options: {
    model,
    session: valueOption('Input:', 'NAME', 'Continue the session of this name, or start it', parseSessionName),
    continue: flagOption('Input:', 'Continue the newest session of this folder'),
    resume: flagOption('Input:', 'Choose a session of this folder from a list, and continue it'),
    cwd,
    log,
    allow,
    ask,
    deny,
    'trust-project': trustProject,
    yes,
    sandbox,
    net,
    writable,
    steps: { ...steps, about: `Maximum number of steps per message (default: ${STEPS_MAX_DEFAULT})` },
    timeout: { ...timeout, about: 'Time limit per message, such as 90s or 30m (default: none)' },
    budget,
    mcp,
  },
  examples: [
    ['drover chat --model anthropic/claude-sonnet-4-5', 'Chat about this folder, and let the agent change it'],
    ['drover chat --session docs', 'Continue the session of this name, or start it'],
    ['drover chat --continue', 'Continue where the last chat in this folder ended'],
    [`drover chat --allow 'shell(pnpm test*)' --budget 2usd`, 'Fewer questions, and a capped cost'],
  ],
  async run(args, io) {
    checkChatTerminal(io);
    const wanted = await chooseChatSession(args, io);
    if (wanted === NOTHING) return exitCode.done;
    const begun = await openBegunSession(wanted, io);
    const { settings, work } = await sessionWork({ ...args, gate: [] }, begun, io);
    const diagnostics = await openDiagnostics(io, args.log);
    const { runChat: talk } = await import('../chat/chat.ts');
    try {
      const records = begun.past === undefined ? undefined : (begun.records ?? []);
      return await talk({ ...work, args, records }, { settings, diagnostics, io });
    } finally {
      await diagnostics.close();
    }
  },
});

const NOTHING = Symbol('the user chose no session');

type SessionWish = {
  readonly session: string | undefined;
  readonly continue: boolean;
  readonly resume: boolean;
  readonly cwd: string | undefined;
};

async function chooseChatSession(wish: SessionWish, io: Io): Promise<string | typeof NOTHING | undefined> {
  const given = [wish.session !== undefined, wish.continue, wish.resume].filter(Boolean).length;
  if (given > 1) throw new UsageError('--session, --continue and --resume contradict each other; give one of them');
  if (!wish.continue && !wish.resume) return wish.session;
  const { newestChatSession, pickChatSession } = await import('../chat/pick-session.ts');
  const cwd = resolve(io.cwd, wish.cwd ?? '.');
  return wish.continue ? newestChatSession(cwd, io) : ((await pickChatSession(cwd, io)) ?? NOTHING);
}

function checkChatTerminal({ stdin, stdout, env }: Io): void {
  const instead = 'drover exec "…" --session NAME sends one message without a terminal';
  if (stdin.isTTY !== true || stdout.isTTY !== true) throw new UsageError(`drover chat needs a terminal; ${instead}`);
  if (env['TERM'] === 'dumb')
    throw new UsageError(`drover chat needs a terminal that can move its cursor, and TERM is dumb; ${instead}`);
}
