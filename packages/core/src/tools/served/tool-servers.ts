// The servers that a run or a session is connected to, as the agents in it use them.

import type { Question } from '../../agent/calls/calls.ts';
import type { Decision, Event } from '@drover/protocol/events';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { ToolError } from '../../errors.ts';
import type { CallServed, ServedTool } from './served.ts';

export type ToolServers = {
  /** The list never changes: agents declare these tools to the end, even if the servers offer others later. */
  readonly tools: readonly ServedTool[];
  /** Warnings for the user: servers and tools that are left out. */
  readonly warnings: readonly string[];
  /** Returns the connection of one agent to the servers. */
  readonly lineFor: (agent: ServedAgent) => ServerLine;
};

/** An agent that calls served tools. */
export type ServedAgent = {
  /** The agent's working folder, in which its own servers start. */
  readonly cwd: string;
  readonly sandbox: SandboxPolicy | undefined;
  readonly emit: (event: Event) => void;
  /** Asks the user a question of a server; undefined if it stays open. `words` answer one with a field. */
  readonly question: (
    question: Question,
    signal: AbortSignal,
  ) => Promise<(Decision & { readonly words?: string }) | undefined>;
};

export type ServerLine = {
  readonly call: CallServed;
  /** Ends the servers of this agent alone. */
  readonly close: () => Promise<void>;
};

export const NO_SERVERS: ToolServers = {
  tools: [],
  warnings: [],
  lineFor: () => ({
    call: async ({ server }) => {
      throw new ToolError(`the MCP server ${server} is not connected`);
    },
    close: async () => undefined,
  }),
};
