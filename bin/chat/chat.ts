// A chat: the user sends messages and one agent answers in turns, until the user leaves.
//
// An interrupted turn is no failure. Its completed work stays in the conversation, and the next message follows it.

import { setTimeout as delay } from 'node:timers/promises';
import { DroverError, UsageError } from '@drover/core/errors';
import type { JsonObject } from '@drover/protocol/json';
import { endAllChildren } from '@drover/core/tools/process/child';
import { redactorFor } from '../diagnostics.ts';
import type { Surroundings } from '../session/execution.ts';
import type { SessionWork } from '../session/open-session.ts';
import { questionsTo } from '../terminal/permission.ts';
import { Person } from '../terminal/person.ts';
import { showAll } from '../terminal/screen.ts';
import { codeOfStop, exitCode } from '../start/exit-code.ts';
import { print } from '../io.ts';
import { shortIdIn } from '../history/id.ts';
import { adviceLine } from '../history/state.ts';
import { type Stop, watchForStop } from '../stop.ts';
import { linesView } from '../views/lines.ts';
import { styleFor } from '../views/text/style.ts';
import { clean, columnsOf } from '../views/text/terminal-text.ts';
import { chatView } from './chat-view.ts';
import { lastTurn } from './last-turn.ts';
import { slashIn, slashNames } from './slash.ts';
import { Talk } from './talk.ts';
import { Terminal } from './input/terminal.ts';

// How long leaving waits for the agent after a second Ctrl-C.
const LEAVE_MS_MAX = 500;
const FIRST_NOTE = 'Enter sends · Esc interrupts · /help';
const INTERRUPTED = 'work done so far is kept; say what to do next';

/** `records`: the journal of the session, if it has any history. */
export async function chat(
  work: SessionWork,
  surroundings: Surroundings,
  records: readonly JsonObject[] | undefined,
): Promise<number> {
  const { io } = surroundings;
  await using opened = new AsyncDisposableStack();
  let terminal: Terminal | undefined;
  const atOnce = (): void => {
    endAllChildren('SIGKILL');
    terminal?.close();
  };
  const stop = opened.adopt(watchForStop(io, atOnce), ({ close }) => close());
  const lines = {
    ask: (words: string, signal: AbortSignal) => terminal?.line(words, signal) ?? Promise.resolve(undefined),
    isGone: () => terminal?.isGone ?? true,
    close: () => undefined,
  };
  const person = new Person(lines, () => columnsOf(io.stdout) - 2);
  const begun = Talk.begin(work, surroundings, questionsTo(person), records === undefined);
  const talk = opened.adopt(await begun, (each) => each.close());
  // Open the terminal last, so earlier errors are printed on a terminal in its normal mode.
  terminal = opened.adopt(new Terminal(io), (each) => each.close());
  return await new Room({ work, surroundings, talk, terminal, person, stop }).converse(records);
}

type Furniture = {
  readonly work: SessionWork;
  readonly surroundings: Surroundings;
  readonly talk: Talk;
  readonly terminal: Terminal;
  readonly person: Person;
  readonly stop: Stop;
};

/** The loop of a chat: reads messages, runs turns. */
class Room {
  readonly #in: Furniture;
  readonly #said: string[];
  readonly #left = Promise.withResolvers<void>();
  #isLeaving = false;

  constructor(furniture: Furniture) {
    this.#in = furniture;
    this.#said = [...furniture.talk.said];
  }

  /** Runs the chat, and returns its exit code. */
  async converse(records: readonly JsonObject[] | undefined): Promise<number> {
    const { talk, stop, surroundings } = this.#in;
    const { io } = surroundings;
    await this.#greet(records);
    const ending = await this.#exchange();
    const advice = `the session is saved; continue with: drover chat --session ${this.#short(talk.id)}`;
    if (talk.isBegun) await print(io.stdout, `\n${adviceLine(advice, columnsOf(io.stdout))}`);
    if (stop.signal.aborted) return codeOfStop(stop.cause());
    return this.#isLeaving || ending === 'interrupt' ? exitCode.interrupted : exitCode.done;
  }

  async #greet(records: readonly JsonObject[] | undefined): Promise<void> {
    const { talk, work, surroundings } = this.#in;
    const { io } = surroundings;
    const name = styleFor(io.stdout, io.env)('bold', 'drover');
    await print(io.stdout, `${name} ${clean(`${talk.model.label} in ${work.cwd}`)}\n`);
    if (records === undefined) return;
    await this.#say(`resuming session ${this.#short(talk.id)}; its last turn:`);
    await this.#say('');
    const view = linesView(io.stdout, io.env, 'asked shown');
    for (const event of lastTurn(records)) await view.show(event);
    await view.close();
  }

  /** Exchanges messages until the user leaves; returns how the user left. */
  async #exchange(): Promise<'end' | 'interrupt'> {
    const { terminal, stop } = this.#in;
    let note = FIRST_NOTE;
    while (!stop.signal.aborted && !this.#isLeaving) {
      await this.#say('');
      const typed = await terminal.message({ history: this.#said, slashes: slashNames, note }, stop.signal);
      note = '';
      if ('leave' in typed) return typed.leave;
      this.#said.push(typed.text);
      await this.#say('');
      if (await this.#isLast(typed.text)) return 'end';
    }
    return 'end';
  }

  /** Runs a message or slash command; returns true if the user leaves. */
  async #isLast(text: string): Promise<boolean> {
    const { talk, work, surroundings } = this.#in;
    const { settings, io } = surroundings;
    try {
      const slash = slashIn(text);
      if (slash === undefined) {
        await this.#watch((signal) => talk.say(text, signal));
        return false;
      }
      const shorten = (): Promise<void> => this.#watch((signal) => talk.compact(signal));
      const tools = { say: this.#say, short: this.#short, shorten, columns: columnsOf(io.stdout) };
      return await slash({ talk, settings, cwd: work.cwd, ...tools });
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof DroverError)) throw error;
      await this.#say(`! ${(await redactorFor(io)).text(error.message)}`);
      return false;
    }
  }

  /** Shows a turn until it ends. Keys can interrupt it. */
  async #watch(begin: (signal: AbortSignal) => Promise<Watched | undefined>): Promise<void> {
    const { talk, terminal, person, stop, surroundings } = this.#in;
    const { io } = surroundings;
    const interrupt = new AbortController();
    const abort = (): void => interrupt.abort(new DroverError({ kind: 'aborted', by: 'user' }));
    // Each turn gets its own view, because the chat prints between turns.
    const view = chatView(linesView(io.stdout, io.env, 'asked known'), terminal, (event) => talk.sees(event));
    const atRest = terminal.atWork({
      interrupt: () => {
        view.interrupted();
        abort();
      },
      leave: () => {
        endAllChildren('SIGKILL');
        abort();
        this.#isLeaving = true;
        this.#left.resolve();
      },
    });
    try {
      const showing = await begin(AbortSignal.any([stop.signal, interrupt.signal]));
      if (showing === undefined) return await view.say('there is nothing to shorten yet');
      const shown = Promise.all([showing.result(), showAll(showing, { view, person, io })]);
      const insisted = this.#left.promise.then(() => delay(LEAVE_MS_MAX, undefined, { ref: false }));
      await Promise.race([shown, insisted]);
      if (this.#isLeaving) view.giveUp();
      if (interrupt.signal.aborted && !this.#isLeaving) await view.say(INTERRUPTED);
    } finally {
      atRest();
    }
  }

  readonly #say = (text: string): Promise<void> => {
    const { io } = this.#in.surroundings;
    return linesView(io.stdout, io.env, 'asked known').say(text);
  };

  readonly #short = (id: string): string => shortIdIn(this.#in.surroundings.settings.home, id);
}

type Watched = Parameters<typeof showAll>[0] & { readonly result: () => Promise<unknown> };
