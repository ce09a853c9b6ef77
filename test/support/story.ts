// Events as text lines, so that a test can compare everything that happened.

import type { Event } from '@drover/protocol/events';

/** Deltas are left out, because the `_end` events have the whole text. */
export function story(events: readonly Event[]): string[] {
  return events.map(told).filter((line) => line !== undefined);
}

function told(event: Event): string | undefined {
  switch (event.type) {
    case 'text_start':
    case 'text_delta':
    case 'text_end':
    case 'thinking_start':
    case 'thinking_delta':
    case 'thinking_end':
    case 'toolcall_start':
    case 'toolcall_delta':
    case 'toolcall_end':
    case 'tool_execution_delta':
    case 'heartbeat':
    case 'usage':
    case 'message_start':
      return undefined;
    case 'session_start':
      return 'session starts';
    case 'awaiting_tool_execution':
      return `waits for ${event.calls.map(({ name }) => name).join(', ')}`;
    case 'session_end':
      return `session ends: ${event.outcome}`;
    case 'message_end':
      return toldMessage(event.message);
    case 'tool_execution_start':
      return `${event.index} starts ${event.summary}`;
    case 'tool_execution_end':
      return `${event.index} ${event.isError ? 'fails' : 'ends'}: ${event.outputSummary}`;
    case 'permission_request':
      return `${event.index} asks: ${event.subject}`;
    case 'permission_decision':
      return `${event.index} ${event.allowed ? 'is allowed' : 'is denied'} by ${event.by}`;
    case 'retry':
      return `tries again after attempt ${event.retry}: ${event.failure.kind}`;
    case 'model_fallback':
      return `asks ${event.to} instead of ${event.from}: ${event.failure.kind}`;
    case 'attempt_discarded':
      return `discards an attempt: ${event.failure?.kind ?? event.reason}`;
    case 'compaction_start':
      return `shortens the conversation (${event.reason})`;
    case 'compaction_end':
      return event.ok ? 'has shortened it' : 'could not shorten it';
    case 'warning':
      return `warning: ${event.message}`;
    case 'done':
      return 'done';
    case 'incomplete':
    case 'error':
      return `${event.type}: ${event.failure.kind}`;
    case 'cancelled':
      return 'cancelled';
    case 'run_start':
      return event.resumed ? 'run goes on' : 'run starts';
    case 'plan_ready':
      return `plan ${event.round} by ${event.by}: ${event.tasks.map(({ id }) => id).join(', ')}`;
    case 'plan_proposed':
      return `proposes ${event.tasks.map(({ id }) => id).join(', ')}`;
    case 'plan_comment':
      return `user comments: ${event.comment}`;
    case 'tasks_reopened':
      return `user retries ${event.tasks.map(({ id }) => id).join(', ')}`;
    case 'delivered':
      return `delivered: ${event.delivered.deliver}`;
    case 'run_pause':
      return event.paused ? 'user pauses' : 'user lets it go on';
    case 'task_message':
      return `user writes: ${event.text}`;
    case 'task_message_delivered':
      return 'the message is delivered';
    case 'task_ready':
    case 'throttle_wait':
    case 'budget':
      return undefined;
    case 'task_start':
      return 'task starts';
    case 'placement':
      return event.state === 'queued' ? 'offered to hosts' : `placement ${event.state}`;
    case 'task_end':
      return `task ${event.status}${event.again ? ', again' : ''}`;
    case 'attempt_moved':
      return `moves${event.alone ? ' alone' : ''}`;
    case 'merge_start':
      return 'merge starts';
    case 'merge_end':
      return `merge: ${event.outcome}${event.again ? ', again' : ''}`;
    case 'gate_start':
      return `gate on ${event.tasks.join(', ')}`;
    case 'gate_end':
      return `gate ${event.passed ? 'passes' : 'fails'} on ${event.tasks.join(', ')}`;
    case 'run_end':
      return `run ends: ${event.outcome} (${event.exitCode})`;
  }
}

function toldMessage(message: Extract<Event, { type: 'message_end' }>['message']): string {
  switch (message.role) {
    case 'user':
      return `user says ${message.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join(' ')}`;
    case 'assistant':
      return `model ${message.content.map((part) => (part.type === 'tool_call' ? `calls ${part.name}` : `${part.type === 'text' ? 'says' : 'thinks'} ${part.text}`)).join(', ') || 'says nothing'} (${message.stop})`;
    case 'tool':
      return `results ${message.results.map(({ name, isError }) => `${name} ${isError ? 'failed' : 'ok'}`).join(', ')}`;
  }
}
