// Limits that a user sets: for one turn of an agent, and for dollars or tokens.

export type Limits = {
  readonly stepsMax: number;
  readonly textCallRetriesMax: number; // 0 turns off the detection of calls written as text
  readonly outputTokensMax?: number; // per turn
  readonly timeoutMs?: number;
  readonly idleMs?: number; // time without progress: a token, a line of tool output or a result
};

export type Cap = { readonly usd: number } | { readonly tokens: number };
