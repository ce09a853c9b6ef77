// Shows a turn of a chat: notes and finished text stay, the block in progress and the output of running calls are live.

import type { Shown } from '@drover/core/bus';
import type { Io } from '../../io.ts';
import { shortDurationText } from '../../views/text/figures.ts';
import { textStyle } from '../../views/text/style.ts';
import { openLinesView } from '../../views/lines.ts';
import type { View } from '../../views/view.ts';
import type { Screen } from '../screen/screen.ts';
import { CallOutput } from './call-output.ts';
import { MarkdownSpeech } from './speech.ts';

const TICK_MS = 1_000;

export type ChatViewOptions = {
  readonly screen: Screen;
  readonly env: Io['env'];
  readonly status: (text: string) => void;
  /** Gets every event before it is shown. */
  readonly sees: (event: Shown) => void;
};

/** One view for the whole chat. `begin` and `close` bracket a turn. */
export class ChatView implements View {
  readonly #options: ChatViewOptions;
  readonly #calls = new CallOutput();
  #lines: View;
  #speech: MarkdownSpeech;
  #isSpeaking = false;
  #asked = 0; // user messages of this turn
  #isInterrupted = false;
  #isGivenUp = false;
  #begunAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ChatViewOptions) {
    this.#options = options;
    this.#speech = this.#newSpeech();
    this.#lines = this.#newLines();
    options.screen.showLive(() => this.#live());
  }

  /** A turn begins: the status line shows that the agent works. */
  begin(): void {
    this.#lines = this.#newLines();
    this.#asked = 0;
    this.#isInterrupted = false;
    this.#begunAt = Date.now();
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    this.#tick();
  }

  async show(event: Shown): Promise<void> {
    if (this.#isGivenUp) return;
    this.#options.sees(event);
    await this.#prepare(event);
    if (event.type === 'text_start') this.#isSpeaking = true;
    this.#followCalls(event);
    if (event.type === 'message_end' && event.message.role === 'user') {
      this.#asked += 1;
      // The first one stands there as the user typed it; later ones were queued.
      if (this.#asked === 1) return;
    }
    // The chat has printed model and folder already.
    if (event.type !== 'session_start') await this.#lines.show(event);
    if (event.type === 'text_end' || event.type === 'attempt_discarded') this.#isSpeaking = false;
    this.#options.screen.refresh();
  }

  /** Shows events of an earlier process. */
  async retell(events: readonly Shown[]): Promise<void> {
    const lines = this.#newLines();
    for (const event of events) {
      await this.#prepare(event);
      await lines.show(event);
    }
    await lines.close();
  }

  async #prepare(event: Shown): Promise<void> {
    if (event.type === 'text_delta') await this.#speech.ready(event.delta);
    if (event.type === 'text_end') await this.#speech.ready(event.text);
  }

  /** Shows that the user interrupted the turn, and that it will stop. */
  interrupted(): void {
    this.#isInterrupted = true;
    this.#tick();
  }

  /** Shows nothing more: the user has left. */
  giveUp(): void {
    this.#isGivenUp = true;
    this.#rest();
  }

  /** Shows more of a running call's output; at rest, the whole output of the last call. */
  async expand(): Promise<void> {
    if (this.#calls.isRunning) {
      this.#calls.isExpanded = !this.#calls.isExpanded;
      this.#options.screen.refresh();
    } else if (this.#calls.last.length > 0) {
      const dim = textStyle(this.#options.screen.output, this.#options.env);
      const rows = this.#calls.last.map((line) => dim('dim', `      ${line}`));
      this.#options.screen.print(`${rows.join('\n')}\n`);
    }
  }

  say(text: string): Promise<void> {
    return this.#lines.say(text);
  }

  async close(): Promise<void> {
    if (this.#isGivenUp) return;
    this.#rest();
    await this.#lines.close();
  }

  #newLines(): View {
    const { screen, env } = this.#options;
    return openLinesView(screen.output, env, {
      asked: 'asked shown',
      speech: () => (this.#speech = this.#newSpeech()),
    });
  }

  #newSpeech(): MarkdownSpeech {
    return new MarkdownSpeech(this.#options.screen, this.#options.env);
  }

  #followCalls(event: Shown): void {
    switch (event.type) {
      case 'tool_execution_start':
        return this.#calls.begin(event.callId);
      case 'tool_execution_delta':
        return this.#calls.add(event.callId, event.delta);
      case 'tool_execution_end':
        return this.#calls.end(event.callId, event.output);
    }
  }

  #live(): readonly string[] {
    if (this.#isSpeaking) return this.#speech.live();
    const { screen, env } = this.#options;
    return this.#calls.rows(screen.columns).map((row) => textStyle(screen.output, env)('dim', row));
  }

  #tick(): void {
    if (this.#begunAt === undefined || this.#isGivenUp) return;
    const what = this.#isInterrupted ? 'stopping' : 'working';
    const keys = this.#isInterrupted ? 'Ctrl-C leaves at once' : 'Esc interrupts';
    const more = this.#calls.isRunning ? ` · Ctrl-O shows ${this.#calls.isExpanded ? 'less' : 'more'}` : '';
    this.#options.status(`  … ${what} ${shortDurationText(Date.now() - this.#begunAt)} · ${keys}${more}`);
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#begunAt = undefined;
    this.#isSpeaking = false;
    this.#options.status('');
  }
}
