// Modes of a chat: what the agent may change without asking.
//
//   ask        every change and every command needs approval, unless a rule allows it
//   edit       changes in the folder, and commands in the sandbox, need no approval
//   read only  nothing is changed and no command runs; rules and --yes don't help
//
// Deny rules hold in every mode.

import type { Verdict } from '@drover/core/agent/calls/calls';
import type { Policy } from '@drover/core/permission/policy';
import type { Tool } from '@drover/core/tools/tool';

export type Mode = 'ask' | 'edit' | 'read only';

const NEXT: Readonly<Record<Mode, Mode>> = { edit: 'read only', 'read only': 'ask', ask: 'edit' };

export function nextChatMode(mode: Mode): Mode {
  return NEXT[mode];
}

/** The policy of a mode. */
export function policyInChatMode(mode: Mode, policy: Policy): Policy {
  return mode === 'ask' ? { ...policy, workspace: false, contained: false, yes: false } : policy;
}

/** Why a mode denies every call of a tool; undefined if it does not. */
export function deniedInChatMode(mode: Mode, { access }: Tool): Verdict | undefined {
  if (mode !== 'read only' || access === 'read' || access === 'none') return undefined;
  return { effect: 'deny', why: 'the chat is in read-only mode, and only the user can change that' };
}
