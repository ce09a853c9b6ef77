// drover exec <prompt>: one agent, headless, no coordinator.

import { defineCommand, parseNonEmpty, valueOption } from '../start/command.ts';
import { agentOptions, runSessionAgent } from '../session/agent-options.ts';
import { openBegunSession } from '../session/begun.ts';
import { readPrompt } from '../session/prompt.ts';
import { parseSessionName } from '../history/id.ts';

const { model, ...others } = agentOptions;

export const exec = defineCommand({
  word: { name: 'prompt', about: 'Task of the agent; - reads it from standard input', required: false },
  options: {
    model,
    'prompt-file': valueOption('Input:', 'FILE', 'Read the prompt from a file', parseNonEmpty),
    session: valueOption('Input:', 'NAME', 'Continue the session of this name, or start it', parseSessionName),
    ...others,
  },
  examples: [
    ['drover exec "fix the failing test" --model anthropic/claude-sonnet-4-5', 'With ANTHROPIC_API_KEY set'],
    ['drover exec - --json < prompt.txt', 'For scripts: the prompt from standard input, events as JSON'],
    [`drover exec "update the docs" --allow 'shell(pnpm *)' --budget 2usd`, 'Allow some commands, cap the cost'],
    ['drover exec "and now the tests" --session docs', 'Continue the session of this name'],
  ],
  async run(args, io) {
    const prompt = await readPrompt({ word: args.word, file: args['prompt-file'], cwd: io.cwd, stdin: io.stdin });
    return runSessionAgent(args, await openBegunSession(args.session, io), { content: prompt }, io);
  },
});
