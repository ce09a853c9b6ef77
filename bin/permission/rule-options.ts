// The flags --allow, --ask and --deny.

import type { Effect, Rule } from '@drover/core/permission/rules';
import { list } from '../start/command.ts';
import { readRule, readServedRule } from './rule-names.ts';

type ReadRule = (text: string, effect: Effect) => Rule;

const optionsWith = (read: ReadRule) => ({
  allow: list('Permission:', 'RULE', "Allow matching calls, such as 'shell(pnpm test*)'", (text) =>
    read(text, 'allow'),
  ),
  ask: list('Permission:', 'RULE', 'Ask before matching calls; wins over --allow', (text) => read(text, 'ask')),
  deny: list('Permission:', 'RULE', 'Deny matching calls; wins over --ask and --yes', (text) => read(text, 'deny')),
});

export const ruleOptions = optionsWith(readRule);

/** The same for drover serve, where a rule may name a client's tool. */
export const servedRuleOptions = optionsWith(readServedRule);
