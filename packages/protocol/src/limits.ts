// Limits that a user sets: on one turn of an agent, and on money or tokens.

export type Limits = {
  readonly stepsMax: number;
  readonly textCallRetriesMax: number; // 0 turns the detection off
  readonly outputTokensMax?: number; // in one turn
  readonly timeoutMs?: number;
  readonly idleMs?: number; // without progress: a token, a line of a tool's output, a result
};

export type Cap = { readonly usd: number } | { readonly tokens: number };
