// listr2's renderer for a run: it draws RunState, and listr2 tells it when to begin, to refresh and to end.
//
// Guarantees
//   1. It draws at most four times a second, and once a second if nothing happens. A key and an empty screen are
//      drawn at once.
//   2. It draws nothing before the run has begun, and nothing while the screen is left to others.
//   3. The last picture stays on the first screen.

import type { RunState } from '@drover/coordinator/view/state';
import { type Listr, ListrEventType, type ListrRenderer } from 'listr2';
import type { Output } from '../../io.ts';
import type { Style } from '../text/style.ts';
import { terminalColumns } from '../text/terminal-text.ts';
import { EMPTY_DESK, type Frame, dashboardFrame } from './frame.ts';
import type { FullScreen } from './full-screen.ts';
import type { Keys } from './keys.ts';
import type { Operator } from './operator.ts';

const DRAW_MS = 250;
const IDLE_DRAW_MS = 1_000;
const ROWS_DEFAULT = 24;
const LOUDNESS_DECAY = 0.7; // per picture

export type Drawing = {
  readonly state: RunState;
  readonly screen: FullScreen;
  readonly keys: Keys;
  readonly operator: Operator;
  readonly output: Output;
  readonly style: Style;
  readonly ascii: boolean;
  readonly now: () => number;
};

export class DashboardRenderer implements ListrRenderer {
  /** Without it, listr2 would look at the output of the process, not at ours. */
  static readonly nonTTY = true;
  static readonly rendererOptions: Drawing;
  static readonly rendererTaskOptions: never;
  readonly #drawing: Drawing;
  readonly #events: Listr['events'];
  readonly #loudness = new Map<string, { level: number; chars: number }>(); // by task
  #timer: NodeJS.Timeout | undefined;
  #isChanged = false;
  #drawnAt: number | undefined;

  constructor(_tasks: unknown, drawing: Drawing, events: Listr['events']) {
    this.#drawing = drawing;
    this.#events = events;
  }

  render(): void {
    this.#timer = setInterval(() => this.#tick(), DRAW_MS).unref();
    this.#events.on(ListrEventType.SHOULD_REFRESH_RENDER, this.#refresh);
    this.#drawing.output.on('resize', this.#resize);
  }

  end(): void {
    const { state, screen, keys, output } = this.#drawing;
    clearInterval(this.#timer);
    this.#events.off(ListrEventType.SHOULD_REFRESH_RENDER, this.#refresh);
    output.off('resize', this.#resize);
    keys.close();
    const isDrawn = state.end !== undefined || this.#drawnAt !== undefined;
    screen.close(isDrawn ? this.#last() : []);
  }

  readonly #refresh = (): void => {
    this.#isChanged = true;
    if (this.#drawing.screen.isEmpty || this.#drawing.operator.isPressed) this.#tick();
  };

  readonly #resize = (): void => {
    this.#drawing.screen.erase();
    this.#refresh();
  };

  #tick(): void {
    const { state, screen, keys, now, operator } = this.#drawing;
    const isDue = this.#isChanged || now() - (this.#drawnAt ?? 0) >= IDLE_DRAW_MS;
    if (state.settings === undefined || !isDue || !screen.isFree) return;
    this.#drawnAt = now();
    this.#isChanged = false;
    keys.take();
    const frame = this.#frame();
    screen.draw(frame);
    operator.drawn(frame);
  }

  #frame(): Frame {
    const { state, output, operator, keys } = this.#drawing;
    const isOperable = keys.isTaken;
    const columns = this.#columns;
    const canvas = { ...this.#canvas(isOperable), rows: output.rows ?? ROWS_DEFAULT, loudest: this.#loudest() };
    return dashboardFrame(state, operator.desk(columns, isOperable), canvas);
  }

  /** The rows without what can be operated, and one line less: the cursor is below them. */
  #last(): readonly string[] {
    const { state, output } = this.#drawing;
    const rows = (output.rows ?? ROWS_DEFAULT) - 1;
    return dashboardFrame(state, EMPTY_DESK, { ...this.#canvas(false), rows, loudest: undefined }).lines;
  }

  #canvas(isOperable: boolean) {
    const { style, ascii, now } = this.#drawing;
    return { columns: this.#columns, now: now(), style, ascii, isOperable };
  }

  /** A cursor in the last column erases its character when the rest of the line is erased. */
  get #columns(): number {
    return terminalColumns(this.#drawing.output) - 1;
  }

  /** The open task with the most output of late. */
  #loudest(): string | undefined {
    let loudest: string | undefined;
    let most = 0;
    for (const { id, outputChars, lastLine, isOpen } of this.#drawing.state.tasks.values()) {
      const before = this.#loudness.get(id) ?? { level: 0, chars: 0 };
      const level = before.level * LOUDNESS_DECAY + (outputChars - before.chars);
      this.#loudness.set(id, { level, chars: outputChars });
      if (!isOpen || lastLine === '' || level <= most) continue;
      most = level;
      loudest = id;
    }
    return loudest;
  }
}
