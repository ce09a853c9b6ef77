// drover chat: one agent, and somebody who talks with it.

import { STEPS_MAX_DEFAULT } from '@drover/core/agent/limits';
import { UsageError } from '@drover/core/errors';
import { command, value } from '../start/command.ts';
import { openDiagnostics } from '../diagnostics.ts';
import { agentOptions, sessionWork } from '../session/agent-options.ts';
import { sessionFor } from '../session/begun.ts';
import type { Io } from '../io.ts';
import { parseSessionName } from '../history/id.ts';

const { model, cwd, log, allow, ask, deny, yes, sandbox, net, writable, steps, timeout, budget } = agentOptions;

export const chat = command({
  options: {
    model,
    session: value('Input:', 'NAME', 'Go on with the session of this name, or begin it', parseSessionName),
    cwd,
    log,
    allow,
    ask,
    deny,
    yes,
    sandbox,
    net,
    writable,
    steps: { ...steps, about: `Maximum number of steps per message (default: ${STEPS_MAX_DEFAULT})` },
    timeout: { ...timeout, about: 'Stop after so long with each message: 90s, 30m' },
    budget,
  },
  examples: [
    ['drover chat --model anthropic/claude-sonnet-4-5', 'Talk about what is in this folder, and have it changed'],
    ['drover chat --session docs', 'Go on where it was left, or begin a session of this name'],
    [`drover chat --allow 'shell(pnpm test*)' --budget 2usd`, 'Fewer questions, and no surprises'],
  ],
  async run(args, io) {
    checkTerminal(io);
    const begun = await sessionFor(args.session, io);
    const { settings, work } = await sessionWork({ ...args, gate: [] }, begun, io);
    const diagnostics = await openDiagnostics(io, args.log);
    const { chat: talk } = await import('../chat/chat.ts');
    try {
      return await talk(
        work,
        { settings, diagnostics, io },
        begun.past === undefined ? undefined : (begun.records ?? []),
      );
    } finally {
      await diagnostics.close();
    }
  },
});

function checkTerminal({ stdin, stdout, env }: Io): void {
  const instead = 'drover exec "…" --session NAME says one thing in a session, without a terminal';
  if (stdin.isTTY !== true || stdout.isTTY !== true)
    throw new UsageError(`drover chat needs a terminal to talk in; ${instead}`);
  if (env['TERM'] === 'dumb') throw new UsageError(`drover chat needs a terminal that can be painted on; ${instead}`);
}
