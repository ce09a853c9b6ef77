// dashboard: a run on a terminal, painted over and over in the same place by listr2.
//
// WHAT HOLDS
//   It paints at most four times a second, whatever happens, and once a second where nothing does. It
//   never paints while somebody is being asked. No line wraps: they are cut to fit, and the terminal is
//   told not to wrap what it takes for wider than we do. What is said above the picture (questions,
//   warnings) stays there and scrolls. In the end the last picture stays, and the report follows.
//
// HOW IT IS PAINTED
//   Each line is a task of listr2's; its renderer finds out what changed and writes that. An empty picture
//   is an empty line with the cursor below it: that is where text is put above the picture, and where a
//   resized terminal is tidied up. listr2 takes over the streams it is given, so it is given one of our
//   own: else questions would not be seen.

import { RunState } from '@drover/coordinator/state';
import type { Shown } from '@drover/core/bus';
import { createWritable, DefaultRenderer, Listr, ListrLogger, ProcessOutput } from 'listr2';
import { type Io, isGone, type Output, print } from '../io.ts';
import { frameOf } from './dashboard-frame.ts';
import { reportOf } from './report.ts';
import { inAscii, isAscii, looksOf, type Style, styleFor } from './style.ts';
import { clean, columnsOf, widthOfText } from './terminal-text.ts';
import type { RunView } from './view.ts';
import { wrapped } from './word-wrap.ts';

const PAINT_MS = 250;
const IDLE_PAINT_MS = 1_000;
const LINES_MAX = 24; // 16 tasks, and what stands around them
const ROWS_DEFAULT = 24;
const LOUDNESS_DECAY = 0.7; // for each paint

const HIDE_CURSOR = '\u001B[?25l';
const SHOW_CURSOR = '\u001B[?25h';
// All at once where the terminal can, and without wrapping.
const BEGIN = '\u001B[?2026h\u001B[?7l';
const END = '\u001B[?7h\u001B[?2026l';

/** `now` is the clock by which elapsed time is shown. */
export async function dashboardView(output: Output, env: Io['env'], now: () => number): Promise<RunView> {
  const dashboard = new Dashboard(output, env, now);
  await dashboard.open();
  return {
    show: (event) => dashboard.show(event),
    recall: (event) => dashboard.recall(event),
    say: (text) => dashboard.say(text),
    whileAsking: (ask) => dashboard.whileAsking(ask),
    close: () => dashboard.close(),
  };
}

class Dashboard {
  readonly #output: Output;
  readonly #now: () => number;
  readonly #style: Style;
  readonly #isAscii: boolean;
  readonly #state = new RunState();
  readonly #screen: Screen;
  readonly #loudness = new Map<string, { level: number; chars: number }>(); // by task
  #loudest: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isChanged = false;
  #paintedAt = Number.NEGATIVE_INFINITY;
  #askings = 0;
  #columns: number;

  constructor(output: Output, env: Io['env'], now: () => number) {
    this.#output = output;
    this.#now = now;
    this.#style = styleFor(output, env);
    this.#isAscii = isAscii(env);
    this.#columns = columnsOf(output);
    this.#screen = new Screen(output);
  }

  async open(): Promise<void> {
    await this.#screen.open();
    this.#timer = setInterval(() => this.#tick(), PAINT_MS).unref();
    this.#output.on('resize', this.#resize);
  }

  async show(event: Shown): Promise<void> {
    this.#state.take(event);
    this.#isChanged = true;
    if (event.type === 'run_end') return this.#finish();
    const words = this.#wordsOn(event);
    if (words !== undefined) this.#screen.print(words);
    if (this.#paintedAt === Number.NEGATIVE_INFINITY || words !== undefined) this.#tick();
  }

  recall(event: Shown): void {
    this.#state.take(event);
  }

  async say(text: string): Promise<void> {
    if (this.#timer === undefined) return print(this.#output, this.#wrapped(text, ''));
    this.#screen.print(this.#wrapped(text, ''));
    this.#isChanged = true;
  }

  async whileAsking<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    this.#askings += 1;
    if (this.#timer !== undefined) this.#screen.leave();
    try {
      return await ask();
    } finally {
      this.#askings -= 1;
      if (this.#askings === 0 && this.#timer !== undefined) this.#screen.comeBack();
      this.#isChanged = true;
      this.#tick();
    }
  }

  async close(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#output.off('resize', this.#resize);
    const frame = this.#paintedAt === Number.NEGATIVE_INFINITY ? [] : this.#frame();
    this.#screen.close();
    await print(this.#output, frame.map((line) => `${line}\n`).join(''));
  }

  /** The last picture stays, and the report follows. */
  async #finish(): Promise<void> {
    this.#paintedAt = this.#now();
    await this.close();
    const report = reportOf(this.#state, { columns: columnsOf(this.#output), style: this.#style });
    await print(this.#output, this.#marked(`\n${report}`));
  }

  #tick(): void {
    const now = this.#now();
    const isDue = this.#state.settings !== undefined && (this.#isChanged || now - this.#paintedAt >= IDLE_PAINT_MS);
    // A terminal that doesn't take what it has got already gets no more.
    if (!isDue || this.#askings > 0 || this.#timer === undefined || this.#output.writableNeedDrain) return;
    this.#paintedAt = now;
    this.#isChanged = false;
    this.#listen();
    this.#screen.paint(this.#frame());
  }

  #frame(): readonly string[] {
    return frameOf(this.#state, {
      // A cursor in the last column erases what stands there when the rest of the line is erased.
      columns: columnsOf(this.#output) - 1,
      rows: this.#output.rows ?? ROWS_DEFAULT,
      now: this.#now(),
      style: this.#style,
      ascii: this.#isAscii,
      loudest: this.#loudest,
    });
  }

  /** Who says most, of late. */
  #listen(): void {
    let loudest: string | undefined;
    let most = 0;
    for (const { id, outputChars, lastLine, isOpen } of this.#state.tasks.values()) {
      const before = this.#loudness.get(id) ?? { level: 0, chars: 0 };
      const level = before.level * LOUDNESS_DECAY + (outputChars - before.chars);
      this.#loudness.set(id, { level, chars: outputChars });
      if (!isOpen || lastLine === '' || level <= most) continue;
      most = level;
      loudest = id;
    }
    this.#loudest = loudest;
  }

  /** What is worth a line that stays. */
  #wordsOn(event: Shown): string | undefined {
    if (event.type === 'warning') return this.#note('yellow', '!', this.#of(event, event.message));
    if (event.type === 'permission_request') {
      const { format, sign } = looksOf.asking;
      return this.#note(format, sign, this.#of(event, `${event.summary} — ${event.why}`));
    }
    // What the person has said stands on the screen.
    if (event.type === 'permission_decision' && !event.allowed && event.by !== 'user')
      return this.#note('red', '✗', this.#of(event, `not allowed: ${event.reason ?? event.summary}`));
    return undefined;
  }

  #of({ task }: Shown, text: string): string {
    return task === undefined ? text : `${task}: ${text}`;
  }

  #note(format: Parameters<Style>[0], sign: string, text: string): string {
    return this.#marked(`${this.#style(format, sign)} ${this.#wrapped(text, '  ')}`);
  }

  #marked(text: string): string {
    return this.#isAscii ? inAscii(text) : text;
  }

  #wrapped(text: string, indent: string): string {
    const lines = wrapped(clean(text).replaceAll('\t', '  '), columnsOf(this.#output) - indent.length).trimEnd();
    return `${lines.replaceAll('\n', `\n${indent}`)}\n`;
  }

  readonly #resize = (): void => {
    const columns = columnsOf(this.#output);
    this.#screen.tidy(this.#columns, columns);
    this.#columns = columns;
    this.#isChanged = true;
    this.#tick();
  };
}

type Lines = Listr<object, typeof DefaultRenderer, typeof DefaultRenderer>['tasks'];

/** A place on the terminal that listr2 paints, at the bottom of what was written. */
class Screen {
  readonly #output: Output;
  readonly #lines: Lines; // those that are shown
  readonly #renderer: LineRenderer;
  readonly #all: Lines;
  #shown: readonly string[] = [];
  #isAway = false;

  constructor(output: Output) {
    this.#output = output;
    const line = { title: ' ', task: () => undefined };
    const listr = new Listr<object, typeof DefaultRenderer, typeof DefaultRenderer>(
      Array.from({ length: LINES_MAX }, () => line),
      {
        renderer: DefaultRenderer,
        registerSignalListeners: false,
        exitOnError: false,
      },
    );
    this.#all = listr.tasks;
    this.#lines = [];
    const stream = createWritable((chunk) => this.#write(`${BEGIN}${chunk}${END}`)) as NodeJS.WriteStream;
    const logger = new ListrLogger({ processOutput: new ProcessOutput(stream, stream) });
    this.#renderer = new LineRenderer(this.#lines, { lazy: true, clearOutput: true, logger }, listr.events);
  }

  async open(): Promise<void> {
    for (const line of this.#all) await line.check({});
    await this.#renderer.render();
  }

  paint(lines: readonly string[]): void {
    this.#makeRoom(Math.min(lines.length, LINES_MAX));
    this.#shown = lines.slice(0, LINES_MAX);
    this.#lines.splice(0, Infinity, ...this.#all.slice(0, this.#shown.length));
    for (const [at, text] of this.#shown.entries()) {
      const line = this.#lines[at];
      if (line !== undefined) line.title = text;
    }
    this.#renderer.update();
  }

  // At the bottom of the terminal only a newline scrolls; listr2 moves the cursor over lines that it takes
  // for unchanged, and an empty line of a picture that grows is one of those.
  #makeRoom(rows: number): void {
    const more = rows - Math.max(1, this.#shown.length);
    if (more > 0) this.#write(`${'\n'.repeat(more)}${up(more)}`);
  }

  /** Text that stays, above the picture, which comes back with the next paint. */
  print(text: string): void {
    if (this.#isAway) return this.#write(text);
    this.leave();
    this.#write(text);
    this.comeBack();
  }

  /** Takes the picture away; the cursor is where it began, and whoever wants may write there, in whole lines. */
  leave(): void {
    if (this.#isAway) return;
    this.paint([]);
    this.#isAway = true;
    this.#write(`${up(1)}${SHOW_CURSOR}`);
  }

  /** The cursor is at the beginning of a line; the picture's place is there. */
  comeBack(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#write(`\n${HIDE_CURSOR}`);
  }

  /** A terminal that became narrower has wrapped the picture: what that pushed up goes too. */
  tidy(before: number, columns: number): void {
    if (this.#isAway) return;
    const rowsOf = (line: string): number => Math.max(1, Math.ceil(widthOfText(line) / columns));
    // Painted with colours, they have the width they have without.
    const pushed = columns >= before ? 0 : this.#shown.reduce((sum, line) => sum + rowsOf(clean(line)) - 1, 0);
    this.leave();
    this.#write(`${up(pushed)}\u001B[J`);
    this.comeBack();
  }

  close(): void {
    this.comeBack();
    this.#renderer.end();
  }

  #write(text: string): void {
    if (!isGone(this.#output)) this.#output.write(text);
  }
}

function up(rows: number): string {
  return rows === 0 ? '' : `\u001B[${rows}A\r`;
}

/** Our lines are as they should be: they are neither cut nor wrapped, and bear no marks but their own. */
class LineRenderer extends DefaultRenderer {
  // It has a stream of its own, whatever the process has.
  static override nonTTY = true;

  protected override format(message: string): string[] {
    return [message];
  }
}
