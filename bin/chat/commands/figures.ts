// /tokens, /cost and /permissions: what the chat has used, and what the agent may do.

import { countText, dollarsText, tokenFiguresText, tokensText } from '../../views/text/figures.ts';
import type { Chat } from './slash.ts';

export async function tellChatTokens({ talk, say }: Chat): Promise<void> {
  await say(tokenFiguresText(talk.standing.tokens).join(' · '));
  const parts = talk.parts.map(([name, size]) => `${name} ${countText(size)}`);
  if (parts.length > 0) await say(`in it, about: ${parts.join(' · ')}`);
}

export async function tellChatCost({ talk, say }: Chat): Promise<void> {
  const { usage, cost, tokens: prompt } = talk.standing;
  const figures = [...tokensText(usage), ...(cost === undefined ? [] : [dollarsText(cost)])].join(' · ');
  await say(
    `${figures}; the conversation has about ${countText(prompt.expected)} of ${countText(prompt.window)} tokens`,
  );
}

export async function tellChatPermissions({ talk, say }: Chat): Promise<void> {
  const { rules, yes, containment } = talk.work;
  await say(`mode: ${talk.mode}${yes ? ', with --yes' : ''}; sandbox: ${containment.use.used}`);
  for (const { effect, text } of rules) await say(`${effect} ${text}`);
  for (const [key, isAllowed] of talk.remembered) await say(`${isAllowed ? 'always' : 'never'} ${key}`);
  if (rules.length === 0 && talk.remembered.size === 0) await say('no rules, and no answers for good');
}
