// /tokens, /cost and /permissions: what the chat has used, and what the agent may do.

import { count, dollars, tokenFigures, tokens } from '../../views/text/figures.ts';
import type { Chat } from './slash.ts';

export async function tellTokens({ talk, say }: Chat): Promise<void> {
  await say(tokenFigures(talk.standing.tokens).join(' · '));
  const parts = talk.parts.map(([name, size]) => `${name} ${count(size)}`);
  if (parts.length > 0) await say(`in it, about: ${parts.join(' · ')}`);
}

export async function tellCost({ talk, say }: Chat): Promise<void> {
  const { usage, cost, tokens: prompt } = talk.standing;
  const figures = [...tokens(usage), ...(cost === undefined ? [] : [dollars(cost)])].join(' · ');
  await say(`${figures}; the conversation has about ${count(prompt.expected)} of ${count(prompt.window)} tokens`);
}

export async function tellPermissions({ talk, say }: Chat): Promise<void> {
  const { rules, yes, containment } = talk.work;
  await say(`mode: ${talk.mode}${yes ? ', with --yes' : ''}; sandbox: ${containment.use.used}`);
  for (const { effect, text } of rules) await say(`${effect} ${text}`);
  for (const [key, isAllowed] of talk.remembered) await say(`${isAllowed ? 'always' : 'never'} ${key}`);
  if (rules.length === 0 && talk.remembered.size === 0) await say('no rules, and no answers for good');
}
