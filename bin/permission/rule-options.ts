// The flags --allow, --ask and --deny.

import type { Effect, Rule } from '@drover/core/permission/rules';
import { list } from '../start/command.ts';
import { readRule, readServedRule } from './rule-names.ts';

type ReadRule = (text: string, effect: Effect) => Rule;

const optionsWith = (read: ReadRule) => ({
  allow: list('Permission:', 'RULE', "Allow what matches, such as 'shell(pnpm test*)'", (text) => read(text, 'allow')),
  ask: list('Permission:', 'RULE', 'Ask before what matches; wins over --allow', (text) => read(text, 'ask')),
  deny: list('Permission:', 'RULE', 'Never allow what matches; wins over --ask and --yes', (text) =>
    read(text, 'deny'),
  ),
});

export const ruleOptions = optionsWith(readRule);

/** Those of drover serve, where a rule may name a tool of a client. */
export const servedRuleOptions = optionsWith(readServedRule);
