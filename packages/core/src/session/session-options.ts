// Options of a session.

import type { Bus, BusOptions, Store } from '../bus.ts';
import type { Decision, GateEvent } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { Past } from '../journal/history.ts';
import type { Json } from '@drover/protocol/json';
import type { Admission } from '../model/spending/admission.ts';
import type { Cap, Limits } from '@drover/protocol/limits';
import type { Message, ToolDefinition } from '@drover/protocol/messages';
import type { ModelRoute } from '../model/fallback.ts';
import type { RetryPolicy } from '../model/retry.ts';
import type { Sampling } from '@drover/protocol/model';
import type { Spent } from '../model/spending/spent.ts';
import type { SandboxUse } from '@drover/protocol/run';
import type { CallHooks } from '../hooks/call-hooks.ts';
import type { Skill } from '../skills/skill.ts';
import type { Tool, TurnContext } from '../tools/tool.ts';
import type { Inbox } from './inbox.ts';
import type { Ask } from '../agent/ask.ts';
import type { Question, Verdict } from '../agent/calls/calls.ts';

export type SessionOptions = ModelRoute & {
  readonly id: string;
  readonly worker: number; // 0 unless a coordinator made it
  /** Models to ask, in order, when the first one is unavailable. */
  readonly fallbacks?: readonly ModelRoute[];
  readonly cap?: Cap;
  /** Spending of earlier processes, which counts against the cap. */
  readonly spentBefore?: Spent;
  /** Admission of its requests, if sessions share a provider. Default: its own cap. */
  readonly admission?: Admission;
  /** Takes the answers of the model. Default: this thread asks the providers of the routes. */
  readonly ask?: Ask;
  readonly charsPerToken?: number;
  readonly tools: readonly Tool[];
  /** Definitions to send to the model, byte for byte. Default: made from `tools`. */
  readonly definitions?: readonly ToolDefinition[];
  /** Timeout of remote calls whose tool has none. */
  readonly remoteTimeoutMs?: number;
  readonly context: TurnContext;
  /** How commands are sandboxed, for the journal. */
  readonly sandbox?: SandboxUse['used'];
  /** System prompt to send, byte for byte. Default: drover's prompt with the repository's instructions. */
  readonly system?: string;
  /** Skills that its system prompt lists, unless `system` is given. Their tool is among `tools`. */
  readonly skills?: readonly Skill[];
  /** Messages before the session, which are not in its journal. */
  readonly seed?: readonly Message[];
  /** First messages of a new session. Unlike the seed, they are in its journal. */
  readonly opening?: readonly Message[];
  readonly sampling?: Sampling;
  readonly cacheKey?: string;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly judge: (tool: Tool, input: Json) => Promise<Verdict>;
  /** Resolves to undefined if the question stays open; the turn is suspended then. */
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision | undefined>;
  /** Called before a call runs, for example to keep copies of the files that it changes. */
  readonly beforeCall?: (tool: Tool, input: Json) => Promise<void>;
  /** Hooks before and after its calls. */
  readonly hooks?: CallHooks;
  /** Gates of a turn that is done: the failure that makes it incomplete, or undefined. */
  readonly check?: (emit: (event: GateEvent) => void, signal: AbortSignal) => Promise<Failure | undefined>;
  readonly pass: BusOptions['pass'];
  readonly store?: Store;
  /** Receives the events. Default: the session's own bus. */
  readonly outlet?: Outlet;
  /** Steering messages to the agent. Default: an inbox of the session's own, filled by `steer`. */
  readonly inbox?: Inbox;
  /** History of the session that is resumed. */
  readonly past?: Past;
};

/** The methods of a bus that a session uses. */
export type Outlet = Pick<Bus, 'emit' | 'settled'>;
