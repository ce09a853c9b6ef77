// An MCP server as data: how it is reached, what it may do, and what the user has said about it.

/** One instance for all agents, or one for each task, started in its workspace. */
type Scope = 'shared' | 'task';

export type ServerSpec = {
  readonly name: string;
  readonly scope: Scope;
  /** Its tools are declared only once `find_tools` has found them. */
  readonly isDeferred: boolean;
  /** Without it, drover does not begin. */
  readonly isRequired: boolean;
  /** Tools whose calls may be repeated after a crash; `all` of them. */
  readonly idempotent: readonly string[] | 'all';
  /** How long a call may be silent. */
  readonly timeoutMs: number;
  /** How long it may take to start and to list its tools. */
  readonly startMs: number;
  /** For messages: file and line. */
  readonly place: string;
  readonly reach: StdioReach | HttpReach;
};

/** A program, started by drover. */
export type StdioReach = {
  readonly type: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where it starts, relative to the folder that is worked on. */
  readonly cwd: string | undefined;
  /** Rights beyond the working folder. */
  readonly net: readonly string[];
  readonly readable: readonly string[];
  readonly writable: readonly string[];
};

/** A server that runs elsewhere, over streamable HTTP. */
export type HttpReach = {
  readonly type: 'http';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly oauth?: OauthSettings;
};

/** Settings of a login that the user makes, because the server does not offer them. */
export type OauthSettings = {
  /** The id of a client that is registered already. Without it drover registers one. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly scope?: string;
  /** Port on this machine where the browser comes back; without it any free one. */
  readonly callbackPort?: number;
};
