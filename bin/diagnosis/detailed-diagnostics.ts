// The lines of DROVER_LOG=debug: requests, calls, waits and commits, while they happen.
//
// A line holds names, numbers and summaries, and neither prompts nor outputs. Events are redacted before they come
// here; diagnostics.ts redacts every line once more.

import type { Store } from '@drover/core/bus';
import type { Diagnose } from '@drover/core/diagnosis';
import type { Recorded } from '@drover/protocol/events';
import { DroverError } from '@drover/core/errors';
import type { Provider } from '@drover/core/model/provider';
import type { ModelEvent, ModelRequest } from '@drover/protocol/model';

/** Diagnoses each request with its model, tokens and time. */
export function diagnoseProvider(provider: Provider, diagnose: Diagnose): Provider {
  return { ...provider, stream: (request, signal) => diagnoseAnswer(provider, diagnose, { request, signal }) };
}

type Sent = { readonly request: ModelRequest; readonly signal: AbortSignal };

async function* diagnoseAnswer(
  provider: Provider,
  diagnose: Diagnose,
  { request, signal }: Sent,
): AsyncGenerator<ModelEvent> {
  const { messages, tools, outputTokensMax } = request;
  const model = `${provider.id}/${request.model}`;
  const begun = performance.now();
  const ms = (): number => Math.round(performance.now() - begun);
  let firstMs: number | undefined;
  diagnose('request sent', { model, messages: messages.length, tools: tools.length, outputTokensMax });
  try {
    for await (const event of provider.stream(request, signal)) {
      firstMs ??= ms();
      if (event.type === 'finished') {
        const { usage, stop } = event.message;
        diagnose('request answered', { model, firstMs, ms: ms(), stop, ...usage });
      }
      yield event;
    }
  } catch (error) {
    const why = error instanceof DroverError ? error.failure.kind : String(error);
    diagnose('request failed', { model, ms: ms(), why });
    throw error;
  }
}

/** Diagnoses what is kept: calls, waits, retries, tasks, merges and gates. */
export function diagnoseStore(store: Store, diagnose: Diagnose): Store {
  const begun = new Map<string, number>(); // by call
  return {
    note: (event) => store.note(event),
    append: (events) => {
      for (const event of events) diagnoseEvent(event, begun, diagnose);
      return store.append(events);
    },
  };
}

function diagnoseEvent(event: Recorded, begun: Map<string, number>, diagnose: Diagnose): void {
  const { session, run, task, attempt, step } = event;
  const tell = (message: string, fields: object): void =>
    diagnose(message, { session, run, task, attempt, step, ...fields });
  switch (event.type) {
    case 'tool_execution_start':
      begun.set(event.callId, Date.parse(event.at));
      return tell('call begun', { call: event.callId, summary: event.summary });
    case 'tool_execution_end': {
      const { callId: call, summary, isError, output } = event;
      const at = begun.get(call);
      begun.delete(call);
      const ms = at === undefined ? undefined : Date.parse(event.at) - at;
      return tell(at === undefined ? 'call refused' : 'call ended', {
        call,
        summary,
        isError,
        ms,
        chars: output.length,
      });
    }
    case 'permission_request':
      return tell('permission asked', { call: event.callId, summary: event.summary, why: event.why });
    case 'permission_decision':
      return tell('permission decided', { call: event.callId, allowed: event.allowed, by: event.by });
    case 'throttle_wait':
      return tell('throttle waits', { ms: event.waitMs, why: event.reason });
    case 'retry':
    case 'attempt_discarded':
      return tell(event.type === 'retry' ? 'request is retried' : 'answer discarded', { why: event.reason });
    case 'task_start':
      return tell('task begun', { base: event.base, workspace: event.workspace });
    case 'task_end':
      return tell('task ended', { status: event.status, commit: event.commit, files: event.files.length });
    case 'merge_end':
      return tell('merge ended', { outcome: event.outcome, commit: event.commit });
    case 'gate_end':
      return tell('gate ended', { command: event.command, passed: event.passed, ms: event.durationMs });
    default:
  }
}
