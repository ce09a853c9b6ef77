// What a session is made from.

import type { Bus, BusOptions, Store } from '../bus.ts';
import type { Decision } from '@drover/protocol/events';
import type { Past } from '../journal/history.ts';
import type { Json } from '@drover/protocol/json';
import type { Admission } from '../model/spending/admission.ts';
import type { Cap, Limits } from '@drover/protocol/limits';
import type { Price } from '../model/catalog.ts';
import type { Message, ToolDefinition } from '@drover/protocol/messages';
import type { Provider } from '../model/provider.ts';
import type { RetryPolicy } from '../model/retry.ts';
import type { Sampling } from '@drover/protocol/model';
import type { Spent } from '../model/spending/spent.ts';
import type { SandboxUse } from '@drover/protocol/run';
import type { Tool, TurnContext } from '../tools/tool.ts';
import type { Question, Verdict } from '../agent/calls/calls.ts';

export type SessionOptions = {
  readonly id: string;
  readonly worker: number; // 0 unless a coordinator made it
  readonly provider: Provider;
  readonly model: string;
  readonly contextTokens: number;
  readonly outputTokensMax: number;
  readonly price?: Price;
  readonly cap?: Cap;
  /** Counts against the cap: what was spent before it was opened. */
  readonly spentBefore?: Spent;
  /** Leave for its requests, where it shares a provider with others; else its own cap decides. */
  readonly admission?: Admission;
  readonly charsPerToken?: number;
  readonly tools: readonly Tool[];
  /** What the model is told of them, made elsewhere, to the byte. */
  readonly definitions?: readonly ToolDefinition[];
  /** How long a call that is handed out may wait for its result, where its tool doesn't say it. */
  readonly remoteTimeoutMs?: number;
  readonly context: TurnContext;
  /** How its commands are contained, for the journal. */
  readonly sandbox?: SandboxUse['used'];
  /** A system prompt made elsewhere, to the byte. */
  readonly system?: string;
  /** What was said before it began, by others. */
  readonly seed?: readonly Message[];
  /** Messages that a new session begins with. They are in its journal, unlike the seed. */
  readonly opening?: readonly Message[];
  readonly sampling?: Sampling;
  readonly cacheKey?: string;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly judge: (tool: Tool, input: Json) => Promise<Verdict>;
  /** Resolves to undefined if the question stays open; the turn is suspended then. */
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision | undefined>;
  readonly pass: BusOptions['pass'];
  readonly store?: Store;
  /** Where events go instead of to a bus of its own. */
  readonly outlet?: Outlet;
  /** What a session of this id has been through before. */
  readonly past?: Past;
};

/** What a session needs of a bus. */
export type Outlet = Pick<Bus, 'emit' | 'settled'>;
