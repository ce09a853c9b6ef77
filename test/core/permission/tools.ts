// Tools as the policy sees them: name, effect and subject.

import { type Policy, judgeCall } from '@drover/core/permission/policy';
import { type Effect, parsePermissionRule } from '@drover/core/permission/rules';
import type { Access, Tool } from '@drover/core/tools/tool';
import type { Verdict } from '@drover/core/agent/calls/calls';

export function toolNamed(name: string, access: Access): Tool {
  return {
    name,
    access,
    description: '',
    schema: {},
    alone: false,
    repeatable: false,
    final: false,
    parse: (input) => ({ ok: true, input }),
    subject: String,
    touches: () => [],
  };
}

export const shell = toolNamed('shell', 'run');

type Rules = { readonly [effect in Effect]?: readonly string[] };

export type Settings = Partial<Omit<Policy, 'rules'>> & { readonly rules?: Rules };

/** In a workspace, outside the sandbox, with nothing allowed beyond the defaults. */
export function policyWith(settings: Settings): Policy {
  const { rules = {}, ...rest } = settings;
  const effects: readonly Effect[] = ['allow', 'ask', 'deny'];
  return {
    root: '/nowhere/workspace',
    yes: false,
    workspace: true,
    contained: false,
    ...rest,
    rules: effects.flatMap((effect) => (rules[effect] ?? []).map((text) => parsePermissionRule(text, effect))),
  };
}

export function judgeCommand(command: string, settings: Settings = {}): Promise<Verdict> {
  return judgeCall(policyWith(settings), shell, command);
}
