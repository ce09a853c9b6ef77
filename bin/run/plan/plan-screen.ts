// The plan screen: draws the plan, and reads the keys that answer it.
//
// Guarantees
//   1. Keys typed before the screen appears never answer it. Keys that arrive together are not an answer either: they
//      were pasted, or typed ahead.
//   2. The terminal is in raw mode only while the screen is shown. Ctrl-C, Ctrl-Z and Ctrl-\ send their signals.

import { setImmediate as immediate } from 'node:timers/promises';
import type { PlanAnswer, PlanProposal } from '@drover/coordinator/plan/approval';
import type { PlannedTask } from '@drover/protocol/plan';
import type { Io, JobSignal } from '../../io.ts';
import { InlinePicture } from './inline-picture.ts';
import { textStyle } from '../../views/text/style.ts';
import { terminalColumns } from '../../views/text/terminal-text.ts';
import { planFrame, type PlanFacts } from './plan-frame.ts';

const ROWS_DEFAULT = 24;
const PAGE_TASKS = 5;
// Each turn of the event loop reads pending input once. The first turn may have done so already, so wait for a second
// one.
const DROP_TURNS = 3;

export type PlanKey = 'run' | 'stop' | 'edit' | 'comment';
type Move = 'up' | 'down' | 'page-up' | 'page-down' | 'expand';

const KEYS: ReadonlyMap<string, PlanKey | Move> = new Map([
  ['y', 'run'],
  ['n', 'stop'],
  ['q', 'stop'],
  ['e', 'edit'],
  ['c', 'comment'],
  ['\r', 'expand'],
  ['\n', 'expand'],
  ['k', 'up'],
  ['\u001B[A', 'up'],
  ['\u001BOA', 'up'],
  ['j', 'down'],
  ['\u001B[B', 'down'],
  ['\u001BOB', 'down'],
  ['\u001B[5~', 'page-up'],
  ['\u001B[6~', 'page-down'],
]);

const SIGNALS: ReadonlyMap<string, JobSignal> = new Map([
  ['\u0003', 'SIGINT'],
  ['\u001A', 'SIGTSTP'],
  ['\u001C', 'SIGQUIT'],
]);

/** Whether the terminal can show the screen; otherwise the user is asked line by line. */
export function canShowPlan({ stdin, stderr, env }: Io): boolean {
  return stdin.setRawMode !== undefined && stderr.isTTY === true && env['TERM'] !== 'dumb';
}

export type PlanAsked = PlanFacts &
  Pick<PlanProposal, 'tasks'> & { readonly mayComment: boolean; readonly note?: string };

/** Shows the plan until a key answers it; undefined if the question is withdrawn. The screen is empty afterwards. */
export async function askPlan(asked: PlanAsked, io: Io, signal: AbortSignal): Promise<PlanKey | undefined> {
  const screen = new PlanScreen(asked, io);
  return screen.ask(signal);
}

class PlanScreen {
  readonly #asked: PlanAsked;
  readonly #io: Io;
  readonly #screen: InlinePicture;
  readonly #answer = Promise.withResolvers<PlanKey | undefined>();
  readonly #expanded = new Set<string>();
  #chosen = 0;
  #top = 0;
  #isCut = false;

  constructor(asked: PlanAsked, io: Io) {
    this.#asked = asked;
    this.#io = io;
    this.#screen = new InlinePicture({ stdout: io.stderr, ...(io.job && { job: io.job }) });
  }

  async ask(signal: AbortSignal): Promise<PlanKey | undefined> {
    const { stdin, stderr, job } = this.#io;
    const withdraw = () => this.#answer.resolve(undefined);
    const forget = job?.onContinue(() => this.#resume());
    await this.#dropKeys();
    stdin.on('data', this.#hear);
    stdin.on('end', withdraw);
    stderr.on('resize', this.#redraw);
    signal.addEventListener('abort', withdraw, { once: true });
    if (signal.aborted || stdin.readableEnded) withdraw();
    this.#draw();
    try {
      return await this.#answer.promise;
    } finally {
      stdin.off('data', this.#hear);
      stdin.off('end', withdraw);
      stderr.off('resize', this.#redraw);
      signal.removeEventListener('abort', withdraw);
      forget?.();
      this.#screen.leave();
      this.#screen.close();
      stdin.setRawMode?.(false);
      stdin.pause();
    }
  }

  async #dropKeys(): Promise<void> {
    const { stdin } = this.#io;
    const drop = () => undefined;
    stdin.on('data', drop);
    stdin.setRawMode?.(true);
    stdin.resume();
    for (let turn = 0; turn < DROP_TURNS; turn++) await immediate();
    stdin.off('data', drop);
  }

  readonly #hear = (chunk: Buffer | string): void => {
    const text = chunk.toString();
    const name = SIGNALS.get(text);
    if (name !== undefined) return this.#send(name);
    const key = KEYS.get(text);
    if (key === undefined || (key === 'comment' && !this.#asked.mayComment)) return;
    if (key === 'run' || key === 'stop' || key === 'edit' || key === 'comment') this.#answer.resolve(key);
    else this.#move(key);
  };

  /** Without a job, as where no shell controls drover, Ctrl-C withdraws the question. */
  #send(name: JobSignal): void {
    const { job, stdin } = this.#io;
    if (job === undefined) return this.#answer.resolve(undefined);
    if (name !== 'SIGINT') {
      this.#screen.leave();
      stdin.setRawMode?.(false);
    }
    job.signal(name);
  }

  #resume(): void {
    this.#io.stdin.setRawMode?.(true);
    this.#screen.comeBack();
    this.#draw();
  }

  #move(key: Move): void {
    const last = this.#asked.tasks.length - 1;
    const by = { up: -1, down: 1, 'page-up': -PAGE_TASKS, 'page-down': PAGE_TASKS, expand: 0 }[key];
    if (key === 'expand') this.#toggle(this.#asked.tasks[this.#chosen]);
    // A task that is longer than the screen is read line by line.
    else if (key === 'down' && this.#isCut) this.#top += 1;
    else this.#chosen = Math.min(last, Math.max(0, this.#chosen + by));
    this.#draw();
  }

  #toggle(task: PlannedTask | undefined): void {
    if (task === undefined) return;
    if (!this.#expanded.delete(task.id)) this.#expanded.add(task.id);
  }

  readonly #redraw = (): void => {
    this.#screen.erase();
    this.#draw();
  };

  #draw(): void {
    const { stderr, env } = this.#io;
    const paper = {
      columns: terminalColumns(stderr),
      rows: stderr.rows ?? ROWS_DEFAULT,
      style: textStyle(stderr, env),
    };
    const sight = { ...this.#asked, chosen: this.#chosen, expanded: this.#expanded, top: this.#top };
    const { lines, top, isCut } = planFrame(sight, paper);
    this.#top = top;
    this.#isCut = isCut;
    this.#screen.draw(lines);
  }
}

/** The answer that a key gives at once; undefined if the user has something to do first. */
export function planAnswerOfKey(
  key: PlanKey | undefined,
  tasks: readonly PlannedTask[],
): PlanAnswer | 'declined' | undefined {
  if (key === 'run') return { tasks };
  return key === 'stop' || key === undefined ? 'declined' : undefined;
}
