// Parts of the next prompt: system prompt, messages of the user, answers and results, by estimated tokens.

import type { Session } from '@drover/core/session/session';
import type { Message } from '@drover/protocol/messages';

const CHARS_PER_TOKEN = 4;

const NAMES: Readonly<Record<Message['role'], string>> = {
  user: 'your messages',
  assistant: 'answers',
  tool: 'results',
};

/** The tools take the rest of the estimate. */
export function measurePromptParts({
  conversation,
  tokens,
}: Session): readonly (readonly [name: string, tokens: number])[] {
  const sizeOf = (text: string): number => Math.ceil(text.length / CHARS_PER_TOKEN);
  const system = sizeOf(conversation.system);
  const roles = (['user', 'assistant', 'tool'] as const).map(
    (role) =>
      [
        NAMES[role],
        conversation.messages
          .filter((each) => each.role === role)
          .reduce((sum, each) => sum + sizeOf(textOfMessage(each)), 0),
      ] as const,
  );
  const tools = Math.max(tokens.estimate - system - roles.reduce((sum, [, size]) => sum + size, 0), 0);
  return [['system prompt', system], ['tools', tools], ...roles];
}

function textOfMessage(message: Message): string {
  return message.role === 'tool'
    ? message.results.map(({ output }) => output).join('')
    : JSON.stringify(message.content);
}
