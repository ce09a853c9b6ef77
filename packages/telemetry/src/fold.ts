// Spans of a run or a session, folded from its events by OpenTelemetry's conventions for generative AI.
//
// Guarantees
//   1. The same records give the same spans, whether they are folded live or from the journal.
//   2. A resumed run continues its trace: ids derive from run, task, attempt, step and call.
//   3. Without `content`, no span holds a prompt, an answer, an argument, a result or a path.

import type { Place, Recorded } from '@drover/protocol/events';
import type { AssistantMessage } from '@drover/protocol/messages';
import { parseTraceParent, spanIdOf, traceIdOf } from './ids.ts';
import type { Span, Value } from './span.ts';

type Attributes = Record<string, Value>;

type OpenSpan = Omit<Span, 'endMs' | 'traceId'>;

type AgentState = {
  readonly spanId: string;
  model: string;
  since: number; // when the next request can have begun
  requests: number;
};

export type FoldOptions = {
  /** Also export messages, arguments and results. */
  readonly content: boolean;
};

export class SpanFold {
  readonly #options: FoldOptions;
  readonly #open = new Map<string, OpenSpan>();
  readonly #agents = new Map<string, AgentState>();
  #owner = '';
  #traceId = '';
  #parentId: string | undefined;
  #rounds = 0;

  constructor(options: FoldOptions) {
    this.#options = options;
  }

  /** The trace of the records so far; empty before the first. */
  get traceId(): string {
    return this.#traceId;
  }

  /** Returns the spans that end with this record. */
  take(record: Recorded): readonly Span[] {
    this.#own(record);
    const at = Date.parse(record.at);
    return [...this.#takeRun(record, at), ...this.#takeTask(record, at), ...this.#takeStep(record, at)];
  }

  /** Events of the run and its sessions. */
  #takeRun(record: Recorded, at: number): readonly Span[] {
    switch (record.type) {
      case 'run_start':
        this.#begin('run', at, {
          name: 'invoke_workflow drover',
          attributes: {
            'gen_ai.operation.name': 'invoke_workflow',
            'gen_ai.workflow.name': 'drover',
            'gen_ai.conversation.id': this.#owner,
          },
        });
        return [];
      case 'run_end':
        return this.#end('run', at, {
          attributes: {
            'drover.run.outcome': record.outcome,
            'drover.run.exit_code': record.exitCode,
            'drover.run.tasks': record.tasks.length,
            ...spanCost(record.cost),
          },
          error: record.exitCode === 0 ? undefined : (record.failure?.kind ?? record.outcome),
        });
      case 'session_start':
        return this.#sessionStart(record, at);
      case 'session_end':
        return this.#sessionEnd(record, at);
      case 'plan_ready':
        this.#rounds = record.round;
        return this.#end('plan', at, {
          attributes: { 'drover.plan.tasks': record.tasks.length, 'drover.plan.by': record.by },
        });
      default:
        return [];
    }
  }

  /** Events of tasks, merges and gates. */
  #takeTask(record: Recorded, at: number): readonly Span[] {
    switch (record.type) {
      case 'task_start':
        this.#begin(spanKeyOfAgent(record), at, {
          name: 'invoke_agent worker',
          attributes: this.#agentAttributes(record, 'worker'),
        });
        this.#agent(record, at);
        return [];
      case 'task_end':
        return record.attempt === undefined
          ? []
          : this.#end(spanKeyOfAgent(record), at, {
              attributes: {
                'drover.task.status': record.status,
                'drover.task.files': record.files.length,
                ...spanUsage(record.usage),
                ...spanCost(record.cost),
              },
              error: record.status === 'finished' ? undefined : (record.failure?.kind ?? record.status),
            });
      case 'merge_start':
        this.#begin(`merge ${record.task ?? ''}`, at, {
          name: 'merge',
          attributes: { 'drover.task.id': record.task ?? '' },
        });
        return [];
      case 'merge_end':
        return this.#end(`merge ${record.task ?? ''}`, at, {
          attributes: { 'drover.merge.outcome': record.outcome },
          error: record.outcome === 'landed' ? undefined : record.outcome,
        });
      case 'gate_start':
        this.#begin(spanKeyOfGate(record), at, {
          name: 'gate',
          attributes: { ...(record.task !== undefined && { 'drover.task.id': record.task }) },
        });
        return [];
      case 'gate_end':
        return this.#end(spanKeyOfGate(record), at, {
          attributes: { 'drover.gate.passed': record.passed, 'drover.gate.flaky': record.flaky },
          error: record.passed ? undefined : 'gate_failed',
        });
      default:
        return [];
    }
  }

  /** Events of one agent's steps. */
  #takeStep(record: Recorded, at: number): readonly Span[] {
    switch (record.type) {
      case 'message_end': {
        const { message } = record;
        const agent = this.#agent(record, at);
        // Messages before the first turn are from a conversation before this one.
        if (message.role === 'assistant' && record.kept !== false && record.turn !== 0)
          return this.#request(record, at, { message, ...(record.cost !== undefined && { cost: record.cost }) });
        agent.since = at;
        return [];
      }
      case 'attempt_discarded':
        return this.#request(record, at, { error: record.failure?.kind ?? 'discarded' });
      case 'retry':
        return this.#request(record, at, { error: record.failure.kind, next: at + record.delayMs });
      case 'model_fallback':
        this.#agent(record, at).model = record.to;
        return [];
      case 'tool_execution_start':
        this.#begin(`call ${record.callId}`, at, this.#call(record, record.name, record.args));
        return [];
      case 'tool_execution_end': {
        const key = `call ${record.callId}`;
        // A call that was refused has an end without a start.
        if (!this.#open.has(key)) this.#begin(key, at, this.#call(record, record.name, undefined));
        const result = this.#options.content ? { 'gen_ai.tool.call.result': record.output } : {};
        return this.#end(key, at, { attributes: result, error: record.isError ? 'tool_error' : undefined });
      }
      default:
        return [];
    }
  }

  #own(record: Recorded): void {
    if (this.#owner !== '') return;
    this.#owner = record.run ?? record.session ?? '';
    const parent = record.type === 'run_start' ? parseTraceParent(record.traceparent) : undefined;
    this.#traceId = parent?.traceId ?? traceIdOf(this.#owner);
    this.#parentId = parent?.parentId;
  }

  #sessionStart(record: Extract<Recorded, { readonly type: 'session_start' }>, at: number): readonly Span[] {
    const agent = this.#agent(record, at);
    agent.model = record.model;
    // An attempt begins with task_start, and a session of its own with each turn.
    if (record.task !== undefined || record.run === undefined) return [];
    this.#begin(spanKeyOfAgent(record), at, {
      name: 'invoke_agent coordinator',
      attributes: this.#agentAttributes(record, 'coordinator'),
    });
    this.#begin('plan', at, {
      name: 'plan',
      attributes: { 'gen_ai.operation.name': 'plan' },
      parent: spanKeyOfAgent(record),
    });
    return [];
  }

  #sessionEnd(record: Extract<Recorded, { readonly type: 'session_end' }>, at: number): readonly Span[] {
    if (record.task !== undefined) return [];
    const key = spanKeyOfAgent(record);
    this.#open.delete('plan');
    if (record.run === undefined)
      this.#begin(key, this.#turnStart ?? at, {
        name: 'invoke_agent session',
        attributes: this.#agentAttributes(record, 'session'),
      });
    this.#turnStart = undefined;
    return this.#end(key, at, {
      attributes: { ...spanUsage(record.usage), ...spanCost(record.cost) },
      error: record.outcome === 'done' || record.outcome === 'suspended' ? undefined : record.outcome,
    });
  }

  #turnStart: number | undefined;

  #agent(record: Place & Recorded, at: number): AgentState {
    const key = spanKeyOfAgent(record);
    if (record.run === undefined) this.#turnStart ??= at;
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const before = [...this.#agents.values()].at(-1)?.model ?? '';
    const made = { spanId: this.#spanId(key), model: before, since: at, requests: 0 };
    this.#agents.set(key, made);
    return made;
  }

  #agentAttributes(record: Place & Recorded, name: string): Attributes {
    const { task, attempt } = record;
    return {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': name,
      'gen_ai.agent.id': spanKeyOfAgent(record),
      'gen_ai.conversation.id': this.#owner,
      ...(task !== undefined && { 'drover.task.id': task }),
      ...(attempt !== undefined && { 'drover.attempt': attempt }),
    };
  }

  /** One request to a model, which ends now. */
  #request(record: Place & Recorded, at: number, ended: EndedRequest): readonly Span[] {
    const agent = this.#agent(record, at);
    const { message, error } = ended;
    const [provider = '', ...rest] = agent.model.split('/');
    const model = rest.join('/');
    const span: Span = {
      traceId: this.#traceId,
      spanId: spanIdOf(this.#owner, spanKeyOfAgent(record), 'chat', record.turn ?? 0, record.step ?? 0, agent.requests),
      parentId: agent.spanId,
      name: `chat ${model}`,
      kind: 'client',
      startMs: Math.min(agent.since, at),
      endMs: at,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': spanProviderName(provider),
        'gen_ai.request.model': model,
        'gen_ai.conversation.id': this.#owner,
        ...(message !== undefined && { 'gen_ai.response.finish_reasons': [message.stop], ...spanUsage(message.usage) }),
        ...spanCost(ended.cost),
        ...(error !== undefined && { 'error.type': error }),
        ...(message !== undefined &&
          this.#options.content && {
            'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', content: message.content }]),
          }),
      },
      ...(error !== undefined && { error }),
    };
    agent.requests += 1;
    agent.since = ended.next ?? at;
    return [span];
  }

  #call(record: Place & Recorded, name: string, args: unknown): BegunSpan {
    const id = 'callId' in record ? record.callId : '';
    return {
      parent: spanKeyOfAgent(record),
      name: `execute_tool ${name}`,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        'gen_ai.tool.call.id': id,
        'gen_ai.tool.type': 'function',
        ...(this.#options.content && args !== undefined && { 'gen_ai.tool.call.arguments': JSON.stringify(args) }),
      },
    };
  }

  #spanId(key: string): string {
    return spanIdOf(this.#owner, key);
  }

  /** A span that is open already keeps its start: a resumed run begins it a second time. */
  #begin(key: string, at: number, { parent = 'run', ...what }: BegunSpan): void {
    if (this.#open.has(key)) return;
    const above = key === 'run' || this.#traceRoot(key) ? this.#parentId : this.#spanId(parent);
    const nth = doesSpanKeyRepeat(key) ? [this.#count(key)] : [];
    this.#open.set(key, {
      spanId: key === 'plan' ? spanIdOf(this.#owner, 'plan', this.#rounds + 1) : spanIdOf(this.#owner, key, ...nth),
      ...(above !== undefined && { parentId: above }),
      kind: 'internal',
      startMs: this.#firstStart(key, at),
      ...what,
    });
  }

  /** A span that a resumed run begins again keeps its first start. */
  #firstStart(key: string, at: number): number {
    if (key === 'plan' || doesSpanKeyRepeat(key)) return at;
    const first = this.#starts.get(key) ?? at;
    this.#starts.set(key, first);
    return first;
  }

  readonly #starts = new Map<string, number>();

  /** The agent of a session has no run above it. */
  #traceRoot(key: string): boolean {
    return key.startsWith('session ');
  }

  readonly #counts = new Map<string, number>();

  #count(key: string): number {
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count;
  }

  #end(
    key: string,
    at: number,
    { attributes, error }: { attributes: Attributes; error?: string | undefined },
  ): readonly Span[] {
    const open = this.#open.get(key);
    if (open === undefined) return [];
    this.#open.delete(key);
    const all = { ...open.attributes, ...attributes, ...(error !== undefined && { 'error.type': error }) };
    return [
      {
        ...open,
        traceId: this.#traceId,
        endMs: Math.max(at, open.startMs),
        attributes: all,
        ...(error !== undefined && { error }),
      },
    ];
  }
}

type EndedRequest = {
  readonly message?: AssistantMessage;
  readonly cost?: number;
  readonly error?: string;
  /** When the next request can begin (default: now). */
  readonly next?: number;
};

/** `parent` is a key; default: the run. */
type BegunSpan = Pick<OpenSpan, 'name' | 'attributes'> & { readonly parent?: string };

function spanKeyOfAgent({ task, attempt, run, turn }: Place & { readonly run?: string }): string {
  if (run === undefined) return `session ${turn ?? 0}`;
  return task === undefined ? 'coordinator' : `attempt ${task} ${attempt ?? 0}`;
}

function spanKeyOfGate({
  tree,
  command,
  task,
  tasks,
}: Extract<Recorded, { readonly type: 'gate_start' | 'gate_end' }>): string {
  return `gate ${JSON.stringify([tree, command, task ?? '', tasks])}`;
}

/** Spans that can happen more than once under the same key. */
function doesSpanKeyRepeat(key: string): boolean {
  return /^(?:gate|merge) /.test(key);
}

function spanUsage({ input, output, cacheRead, cacheWrite }: AssistantMessage['usage']): Attributes {
  return {
    'gen_ai.usage.input_tokens': input + cacheRead + cacheWrite,
    'gen_ai.usage.output_tokens': output,
    'gen_ai.usage.cache_read.input_tokens': cacheRead,
    'gen_ai.usage.cache_creation.input_tokens': cacheWrite,
  };
}

function spanCost(usd: number | undefined): Attributes {
  return usd === undefined ? {} : { 'drover.cost.usd': usd };
}

// The well-known names of the conventions; any other provider keeps its own.
function spanProviderName(name: string): string {
  return name === 'openai-chat' ? 'openai' : name;
}
