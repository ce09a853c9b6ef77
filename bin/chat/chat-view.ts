// Shows a turn of a chat as lines, with a status line below while the agent works silently.

import type { Shown } from '@drover/core/bus';
import { shortDuration } from '../views/text/figures.ts';
import type { View } from '../views/view.ts';

const TICK_MS = 1_000;

type StatusLine = { readonly status: (text: string) => void };

export type ChatView = View & {
  /** Shows that the user interrupted the turn, and that it will stop. */
  readonly interrupted: () => void;
  /** Shows nothing more: the user has left. */
  readonly giveUp: () => void;
};

/** `sees` gets every event before it is shown. */
export function chatView(lines: View, terminal: StatusLine, sees: (event: Shown) => void): ChatView {
  let isInterrupted = false;
  let isGivenUp = false;
  let begunAt: number | undefined; // of this turn
  let timer: NodeJS.Timeout | undefined;
  const paint = (): void => {
    const time = begunAt === undefined ? 0 : Date.now() - begunAt;
    const what = isInterrupted ? 'stopping' : 'working';
    const keys = isInterrupted ? 'Ctrl-C leaves at once' : 'Esc interrupts';
    terminal.status(`  … ${what} ${shortDuration(time)} · ${keys}`);
  };
  const wait = (): void => {
    begunAt ??= Date.now();
    timer ??= setInterval(paint, TICK_MS).unref();
    paint();
  };
  const rest = (): void => {
    clearInterval(timer);
    timer = undefined;
    terminal.status('');
  };
  return {
    show: async (event) => {
      if (isGivenUp) return;
      sees(event);
      const what = behind(event);
      if (what !== 'as before') rest();
      // The chat has printed model and folder already.
      if (event.type !== 'session_start') await lines.show(event);
      if (what === 'working') wait();
      if (what === 'over') begunAt = undefined;
    },
    interrupted: () => {
      isInterrupted = true;
      if (timer !== undefined) paint();
    },
    giveUp: () => {
      isGivenUp = true;
      rest();
    },
    say: (text) => {
      rest();
      return lines.say(text);
    },
    close: async () => {
      if (isGivenUp) return;
      rest();
      await lines.close();
    },
  };
}

/** The status line after an event. It is hidden while text streams and while the user is asked. */
function behind(event: Shown): 'working' | 'text' | 'over' | 'as before' {
  switch (event.type) {
    case 'message_end':
      return event.message.role === 'assistant' ? 'as before' : 'working';
    case 'thinking_end':
    case 'tool_execution_start':
    case 'tool_execution_end':
    case 'permission_decision':
    case 'retry':
    case 'model_fallback':
    case 'attempt_discarded':
    case 'compaction_start':
    case 'compaction_end':
    case 'warning':
      return 'working';
    case 'text_start':
    case 'text_delta':
    case 'text_end':
    case 'permission_request':
    case 'awaiting_tool_execution':
      return 'text';
    case 'session_end':
      return 'over';
    default:
      return 'as before';
  }
}
