// A chat: the user sends messages and one agent answers in turns, until the user leaves.
//
// An interrupted turn is not a failure. Its completed work stays in the conversation, and the next message follows it.

import { setTimeout as delay } from 'node:timers/promises';
import { DroverError, ToolError, UsageError } from '@drover/core/errors';
import type { JsonObject } from '@drover/protocol/json';
import { endAllChildProcesses } from '@drover/core/tools/process/child';
import { diagnosticsRedactor } from '../diagnostics.ts';
import type { Surroundings } from '../session/execution.ts';
import type { SessionWork } from '../session/open-session.ts';
import { terminalQuestions } from '../terminal/permission.ts';
import { Person } from '../terminal/person.ts';
import { showEventsOnTerminal } from '../terminal/show-events.ts';
import { exitCodeOfStop, exitCode } from '../start/exit-code.ts';
import { print } from '../io.ts';
import { shortenStoredId } from '../history/id.ts';
import { stateAdviceLine } from '../history/state.ts';
import { type Stop, watchForStopSignal } from '../stop.ts';
import { linesView } from '../views/lines.ts';
import { textStyle } from '../views/text/style.ts';
import { cleanText, terminalColumns } from '../views/text/terminal-text.ts';
import { type Chat, findSlashCommand, slashItems } from './commands/slash.ts';
import { runChatShellLine } from './commands/shell-line.ts';
import { Paths } from './complete/paths.ts';
import type { ChatArgs } from './runs/run-goal.ts';
import { RunStops } from './runs/run-stops.ts';
import { HistoryFile } from './input/history-file.ts';
import { Pastes } from './input/pastes.ts';
import { Terminal } from './input/terminal.ts';
import { ChatView } from './output/chat-view.ts';
import { previewChangeInChat } from './output/change-preview.ts';
import { lastTurnForChat } from './output/last-turn.ts';
import { chatFolder } from './list-files.ts';
import { Screen } from './screen/screen.ts';
import { Talk } from './talk.ts';

// How long leaving waits for the agent after a second Ctrl-C.
const LEAVE_MS_MAX = 500;
const FIRST_NOTE = 'Enter sends · Esc interrupts · /help';
const INTERRUPTED = 'work done so far is kept; say what to do next';

export type ChatWork = SessionWork & {
  /** The typed command line. */
  readonly args: ChatArgs;
  /** The journal of the session, if it has any history. */
  readonly records: readonly JsonObject[] | undefined;
};

export async function runChat(work: ChatWork, surroundings: Surroundings): Promise<number> {
  const { io, settings } = surroundings;
  const { records } = work;
  await using opened = new AsyncDisposableStack();
  let terminal: Terminal | undefined;
  const runStops = new RunStops();
  const atOnce = (): void => {
    runStops.atOnce();
    endAllChildProcesses('SIGKILL');
    terminal?.close();
  };
  const stop = opened.adopt(
    watchForStopSignal(io, atOnce, (cause) => runStops.takes(cause)),
    ({ close }) => close(),
  );
  stop.signal.addEventListener('abort', () => runStops.stop(stop.cause() ?? 'SIGTERM'));
  const lines = {
    ask: (words: string, signal: AbortSignal) => terminal?.line(words, signal) ?? Promise.resolve(undefined),
    isGone: () => terminal?.isGone ?? true,
    close: () => undefined,
  };
  const style = textStyle(io.stdout, io.env);
  const preview = previewChangeInChat(work.cwd, { style, columns: () => terminalColumns(io.stdout) });
  const person = new Person(lines, () => terminalColumns(io.stdout) - 2, preview);
  const begun = Talk.begin(work, surroundings, terminalQuestions(person), records === undefined);
  const talk = opened.adopt(await begun, (each) => each.close());
  const screen = new Screen(io.stdout);
  const redactor = await diagnosticsRedactor(io);
  const history = new HistoryFile(settings.home, (text) => redactor.text(text));
  const view = new ChatView({
    screen,
    env: io.env,
    status: (text) => terminal?.status(text),
    sees: (event) => talk.sees(event),
  });
  const folder = chatFolder(work.cwd, io, settings);
  const paths = new Paths({ ...folder, onRead: () => screen.refresh() });
  // Open the terminal last, so earlier errors are printed on a terminal in its normal mode.
  terminal = opened.adopt(
    new Terminal(io, {
      screen,
      history: () => [...history.entries.filter((text) => !talk.said.includes(text)), ...talk.said],
      menu: { slashes: slashItems, paths: () => paths.list() },
      pastes: new Pastes(),
      mode: () => `mode: ${talk.mode} (Shift-Tab)`,
      changeMode: () => talk.changeMode(),
      expand: () => void view.expand(),
    }),
    (each) => each.close(),
  );
  const furniture = { work, surroundings, talk, terminal, person, stop, runStops, screen, view, history, paths };
  return await new Room(furniture).converse(records);
}

type Furniture = {
  readonly work: ChatWork;
  readonly surroundings: Surroundings;
  readonly talk: Talk;
  readonly terminal: Terminal;
  readonly person: Person;
  readonly stop: Stop;
  readonly runStops: RunStops;
  readonly screen: Screen;
  readonly view: ChatView;
  readonly history: HistoryFile;
  readonly paths: Paths;
};

/** The loop of a chat: reads messages, runs turns. */
class Room {
  readonly #in: Furniture;
  readonly #left = Promise.withResolvers<void>();
  #isLeaving = false;

  constructor(furniture: Furniture) {
    this.#in = furniture;
  }

  /** Runs the chat, and returns its exit code. */
  async converse(records: readonly JsonObject[] | undefined): Promise<number> {
    const { talk, stop, surroundings, screen } = this.#in;
    const { io } = surroundings;
    await this.#greet(records);
    const ending = await this.#exchange();
    screen.close();
    const advice = `the session is saved; continue with: drover chat --session ${this.#short(talk.id)}`;
    if (talk.isBegun) await print(io.stdout, `\n${stateAdviceLine(advice, terminalColumns(io.stdout))}`);
    if (stop.signal.aborted) return exitCodeOfStop(stop.cause());
    return this.#isLeaving || ending === 'interrupt' ? exitCode.interrupted : exitCode.done;
  }

  async #greet(records: readonly JsonObject[] | undefined): Promise<void> {
    const { talk, work, surroundings, screen } = this.#in;
    const name = textStyle(screen.output, surroundings.io.env)('bold', 'drover');
    await print(screen.output, `${name} ${cleanText(`${talk.model.label} in ${work.cwd}`)}\n`);
    if (records === undefined) return;
    await this.#retell(records);
  }

  async #retell(records: readonly JsonObject[]): Promise<void> {
    const { talk, view } = this.#in;
    const last = lastTurnForChat(records);
    await this.#say(`resuming session ${this.#short(talk.id)}${last.length === 0 ? '' : '; its last turn:'}`);
    await this.#say('');
    await view.retell(last);
    for (const line of talk.takeNews()) await this.#say(line);
  }

  /** Exchanges messages until the user leaves; returns how the user left. */
  async #exchange(): Promise<'end' | 'interrupt'> {
    const { terminal, stop, history, paths } = this.#in;
    let note = FIRST_NOTE;
    while (!stop.signal.aborted && !this.#isLeaving) {
      await this.#say('');
      const typed = await terminal.message(note, stop.signal);
      note = '';
      if ('leave' in typed) return typed.leave;
      history.add(typed.text);
      paths.outdate();
      await this.#say('');
      if (await this.#isLast(typed.text)) return 'end';
    }
    return 'end';
  }

  /** Runs a message, a slash command or a shell command; returns true if the user leaves. */
  async #isLast(text: string): Promise<boolean> {
    const { talk, surroundings } = this.#in;
    try {
      const slash = findSlashCommand(text);
      if (slash !== undefined) return await slash(this.#chat());
      if (/^!\s*\S/.test(text)) await this.#run(text.slice(1).trim());
      else await this.#watch((signal) => talk.say(text, signal));
      return false;
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof DroverError || error instanceof ToolError)) throw error;
      await this.#say(`! ${(await diagnosticsRedactor(surroundings.io)).text(error.message)}`);
      return false;
    }
  }

  #chat(): Chat {
    const { talk, work, surroundings, terminal, screen } = this.#in;
    return {
      talk,
      surroundings,
      cwd: work.cwd,
      say: this.#say,
      short: this.#short,
      run: (goal) => this.#handOver(goal),
      shorten: () => this.#watch((signal) => talk.compact(signal)),
      retell: (records) => this.#retell(records),
      choose: (title, choices) => terminal.choose(title, choices),
      print: (text) => screen.print(text),
      columns: screen.columns,
    };
  }

  /** Gives the terminal to a run with this goal, until it has ended. */
  async #handOver(goal: string): Promise<void> {
    const { talk, terminal, runStops, surroundings, work } = this.#in;
    const handover = { goal, talk, args: work.args };
    const { checkHandover, runGoalOfChat } = await import('./runs/run-goal.ts');
    checkHandover(handover);
    const io = runStops.ioFor(surroundings.io, work.cwd);
    await terminal.lend(() => runGoalOfChat(handover, io));
    await this.#say('');
    for (const line of talk.takeNews()) await this.#say(line);
  }

  /** Runs a command of the user; its output goes to the screen and to the model. */
  async #run(command: string): Promise<void> {
    const { talk, view, terminal, stop } = this.#in;
    const interrupt = new AbortController();
    const abort = (): void => interrupt.abort(new DroverError({ kind: 'aborted', by: 'user' }));
    view.begin();
    const atRest = terminal.atWork({ interrupt: abort, leave: abort });
    try {
      const signal = AbortSignal.any([stop.signal, interrupt.signal]);
      await runChatShellLine(command, { talk, print: (text) => this.#in.screen.print(text), signal });
    } finally {
      await view.close();
      atRest();
    }
  }

  /** Shows a turn until it ends. Keys can interrupt it. */
  async #watch(begin: (signal: AbortSignal) => Promise<Watched | undefined>): Promise<void> {
    const { talk, terminal, person, stop, surroundings, view } = this.#in;
    const interrupt = new AbortController();
    const abort = (): void => interrupt.abort(new DroverError({ kind: 'aborted', by: 'user' }));
    view.begin();
    const atRest = terminal.atWork({
      interrupt: () => {
        view.interrupted();
        abort();
      },
      leave: () => {
        endAllChildProcesses('SIGKILL');
        abort();
        this.#isLeaving = true;
        this.#left.resolve();
      },
    });
    try {
      const showing = await begin(AbortSignal.any([stop.signal, interrupt.signal]));
      if (showing === undefined) return await view.say('there is nothing to shorten yet');
      terminal.queue.steer = (text) => talk.steer(text);
      const shown = Promise.all([
        showing.result(),
        showEventsOnTerminal(showing, { view, person, io: surroundings.io }),
      ]);
      const insisted = this.#left.promise.then(() => delay(LEAVE_MS_MAX, undefined, { ref: false }));
      await Promise.race([shown, insisted]);
      if (this.#isLeaving) view.giveUp();
      else await talk.endTurn();
      if (interrupt.signal.aborted && !this.#isLeaving) await view.say(INTERRUPTED);
    } finally {
      await view.close();
      atRest();
    }
  }

  readonly #say = (text: string): Promise<void> => {
    const { screen, surroundings } = this.#in;
    return linesView(screen.output, surroundings.io.env, 'asked known').say(text);
  };

  readonly #short = (id: string): string => shortenStoredId(this.#in.surroundings.settings.home, id);
}

type Watched = Parameters<typeof showEventsOnTerminal>[0] & { readonly result: () => Promise<unknown> };
