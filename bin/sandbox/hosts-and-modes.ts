// Words of the sandbox that both the command line and the config know.

import { UsageError } from '@drover/core/errors';
import type { SandboxMode } from '@drover/protocol/run';
import { type HostRule, parseHostRule } from '@drover/sandbox/net/hosts';

export const SANDBOX_MODES: readonly SandboxMode[] = ['auto', 'required', 'off'];

/** As it was written, and what it means. */
export type HostName = { readonly text: string; readonly rule: HostRule };

/** Throws UsageError. */
export function parseSandboxHost(text: string): HostName {
  try {
    return { text, rule: parseHostRule(text) };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
