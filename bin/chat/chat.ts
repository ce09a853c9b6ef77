// A chat: messages of a person, turns of one agent, one after the other, until somebody leaves.
//
// An interrupted turn is no mishap here. What it has completed stays in the conversation, and the next message
// is sent behind it.

import { setTimeout as delay } from 'node:timers/promises';
import { DroverError, UsageError } from '@drover/core/failure';
import { endAllChildren } from '@drover/core/tools/process/child';
import type { Surroundings } from '../execution/execution.ts';
import type { SessionWork } from '../execution/open-session.ts';
import { questionsTo } from '../execution/permission.ts';
import { Person } from '../execution/person.ts';
import { showAll } from '../execution/screen.ts';
import { codeOfStop, exitCode } from '../exit-code.ts';
import { print } from '../io.ts';
import { shortIdIn } from '../kept/kept-id.ts';
import { adviceLine } from '../kept/state.ts';
import { watchForStop } from '../stop.ts';
import { linesView } from '../views/lines.ts';
import { styleFor } from '../views/style.ts';
import { columnsOf } from '../views/terminal-text.ts';
import { chatView } from './chat-view.ts';
import { slashIn, slashNames } from './slash.ts';
import { Talk } from './talk.ts';
import { Terminal } from './terminal.ts';

// Whoever insists waits no longer than this, whatever the agent is at.
const LEAVE_MS_MAX = 500;
const FIRST_NOTE = 'Enter sends · Esc interrupts · /help';

/** `isNew`: nothing was said in the session before. */
export async function chat(work: SessionWork, surroundings: Surroundings, isNew: boolean): Promise<number> {
  const { settings, io } = surroundings;
  await using opened = new AsyncDisposableStack();
  const left = Promise.withResolvers<void>();
  let terminal: Terminal | undefined;
  const stop = opened.adopt(
    watchForStop(io, () => {
      endAllChildren('SIGKILL');
      terminal?.close();
    }),
    ({ close }) => close(),
  );
  const lines = {
    ask: (words: string, signal: AbortSignal) => terminal?.line(words, signal) ?? Promise.resolve(undefined),
    isGone: () => terminal?.isGone ?? true,
    close: () => undefined,
  };
  const person = new Person(lines, () => (io.stdout.columns ?? 80) - 2);
  const talk = opened.adopt(await Talk.begin(work, surroundings, questionsTo(person), isNew), (each) => each.close());
  // The last to be opened, so that whatever goes wrong before is told on a terminal in its normal mode.
  terminal = opened.adopt(new Terminal(io), (each) => each.close());
  const keys = terminal;
  const say = (text: string): Promise<void> => linesView(io.stdout, io.env, 'asked known').say(text);
  const short = (id: string): string => shortIdIn(settings.home, id);
  const said = [...talk.said];

  /** Shows it; keys can interrupt it. */
  const watched = async (begin: (signal: AbortSignal) => Promise<Watched | undefined>): Promise<void> => {
    const interrupt = new AbortController();
    // Each is shown by itself: what was said in between is not the view's.
    const view = chatView(linesView(io.stdout, io.env, 'asked known'), keys, (event) => talk.sees(event));
    const atRest = keys.atWork({
      interrupt: () => interrupt.abort(new DroverError({ kind: 'aborted', by: 'user' })),
      leave: () => {
        endAllChildren('SIGKILL');
        interrupt.abort(new DroverError({ kind: 'aborted', by: 'user' }));
        left.resolve();
      },
    });
    try {
      const showing = await begin(AbortSignal.any([stop.signal, interrupt.signal]));
      if (showing === undefined) return await view.say('there is nothing to shorten yet');
      const all = Promise.all([showing.result(), showAll(showing, { view, person, io })]);
      await Promise.race([all, left.promise.then(() => delay(LEAVE_MS_MAX, undefined, { ref: false }))]);
      if (interrupt.signal.aborted && !isLeaving) await view.say(INTERRUPTED);
    } finally {
      atRest();
    }
  };
  let isLeaving = false;
  void left.promise.then(() => (isLeaving = true));

  const style = styleFor(io.stdout, io.env);
  await say(`${style('bold', 'drover')} ${talk.model.label} in ${work.cwd}`);
  if (!isNew) await say(`going on with session ${short(talk.id)}`);
  let note = FIRST_NOTE;
  let ending: 'end' | 'interrupt' = 'end';
  while (!stop.signal.aborted && !isLeaving) {
    await say('');
    const typed = await keys.message({ history: said, slashes: slashNames, note }, stop.signal);
    note = '';
    if ('leave' in typed) {
      ending = typed.leave;
      break;
    }
    said.push(typed.text);
    await say('');
    try {
      const slash = slashIn(typed.text);
      const tools = { talk, settings, cwd: work.cwd, say, short, columns: columnsOf(io.stdout) };
      const shorten = () => watched((signal) => talk.compact(signal));
      if (slash === undefined) await watched((signal) => talk.say(typed.text, signal));
      else if (await slash({ ...tools, shorten })) break;
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof DroverError)) throw error;
      await say(`! ${error.message}`);
    }
  }
  const advice = `the session is kept; go on with: drover chat --session ${short(talk.id)}`;
  if (talk.isBegun) await print(io.stdout, `\n${adviceLine(advice, columnsOf(io.stdout))}`);
  if (stop.signal.aborted) return codeOfStop(stop.cause());
  return isLeaving || ending === 'interrupt' ? exitCode.interrupted : exitCode.done;
}

type Watched = Parameters<typeof showAll>[0] & { readonly result: () => Promise<unknown> };

const INTERRUPTED = 'what was done so far is kept; say what to do next';
