// The flags --allow, --ask and --deny.

import type { Effect, Rule } from '@drover/core/permission/rules';
import { listOption } from '../start/command.ts';
import { readPermissionRule, readServedToolRule } from './rule-names.ts';

type ReadRule = (text: string, effect: Effect) => Rule;

const permissionOptions = (read: ReadRule) => ({
  allow: listOption('Permission:', 'RULE', "Allow matching calls, such as 'shell(pnpm test*)'", (text) =>
    read(text, 'allow'),
  ),
  ask: listOption('Permission:', 'RULE', 'Ask before matching calls; wins over --allow', (text) => read(text, 'ask')),
  deny: listOption('Permission:', 'RULE', 'Deny matching calls; wins over --ask and --yes', (text) =>
    read(text, 'deny'),
  ),
});

export const ruleOptions = permissionOptions(readPermissionRule);

/** The same for drover serve, where a rule may name a client's tool. */
export const servedRuleOptions = permissionOptions(readServedToolRule);
