// What a tool is, and how one is made and run.

import type { z } from 'zod';
import type { Json } from '../json.ts';
import type { ImagePart } from '../model/protocol.ts';

/** What a tool may use of the world. */
export type ToolContext = {
  readonly cwd: string; // the workspace: every path resolves inside it
  readonly callId: string;
  readonly env: Readonly<Record<string, string>>; // for child processes: allow-listed, no provider keys
  readonly outputFolder: string; // where the whole of a long output is kept; made when needed
  readonly signal: AbortSignal;
};

export type ToolEvent =
  | { readonly type: 'delta'; readonly delta: string }
  | {
      readonly type: 'complete';
      readonly output: string;
      readonly isError?: boolean;
      readonly details?: Json;
      readonly images?: readonly ImagePart[];
    };

export type ToolOutput = Omit<Extract<ToolEvent, { type: 'complete' }>, 'type'>;

/** What a call may touch, which decides what the permission rules say by default. */
export type Access = 'read' | 'write' | 'run' | 'none';

export type Tool = {
  readonly name: string;
  readonly description: string;
  readonly schema: Json; // JSON Schema of the arguments, byte-stable
  readonly access: Access;
  /** Arguments as they came from the model -> input, or what is wrong with them, with the path. */
  readonly parse: (
    args: Json,
  ) => { readonly ok: true; readonly input: Json } | { readonly ok: false; readonly problem: string };
  /** What permission rules match: a path, a command. */
  readonly subject: (input: Json) => string;
  /** True where no other call may run meanwhile. */
  readonly alone: boolean;
  /** True where running it twice does no harm, so that it may be run again after a crash. */
  readonly repeatable: boolean;
  /** Absent for a remote tool: the call is handed out, and the session waits for its result. */
  readonly execute?: (input: Json, context: ToolContext) => Promise<ToolOutput> | AsyncIterable<ToolEvent>;
};

export type ToolDeclaration<Schema extends z.ZodType> = {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  readonly access: Access;
  readonly subject: (input: z.infer<Schema>) => string;
  readonly alone?: true;
  readonly repeatable?: true;
  readonly run: (
    input: z.infer<Schema>,
    context: ToolContext,
  ) => Promise<string | ToolOutput> | AsyncIterable<ToolEvent>;
};
