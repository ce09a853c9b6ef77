// A session: its conversation, what it waits for, and a box to write to it.

import { SessionFold } from '../../session-fold.ts';
import { pageCount, pageDollars, pageTokensOf } from '../../words.ts';
import { isAnswerable, type PageApp, type Screen, titled, pageErrorWords } from '../app.ts';
import {
  announceInDom,
  domButton,
  fillDomElement,
  h,
  markDomElement,
  setDomText,
  showDomElement,
  domStateMark,
} from '../dom.ts';
import { Feed } from '../feed.ts';
import { Frame } from '../frame.ts';
import { ConversationList } from '../parts/conversation-list.ts';
import { QuestionCards } from '../parts/question-cards.ts';

export function sessionScreen(app: PageApp, id: string): Screen {
  const screen = new SessionScreen(app, id);
  return { element: screen.element, title: () => screen.title, stop: () => screen.stop() };
}

class SessionScreen {
  readonly element: HTMLElement;
  readonly #app: PageApp;
  readonly #id: string;
  readonly #fold = new SessionFold();
  readonly #title = h('h1', {});
  readonly #about = h('p', { class: 'about' });
  readonly #dot = domStateMark('idle');
  readonly #word = h('span', {});
  readonly #figures = h('span', { class: 'quiet numbers' });
  readonly #cancel = domButton('Stop', () => void this.#stopTurn(), { class: 'danger' });
  readonly #body = h('div', { class: 'scroll session-body' });
  readonly #conversation = new ConversationList('Conversation', this.#body);
  readonly #pending = h('section', { class: 'pending', is: { 'aria-label': 'Remote calls', hidden: true } });
  readonly #questions: QuestionCards;
  readonly #composer: Composer;
  readonly #frame = new Frame(() => this.#draw());
  readonly #feed: Feed;

  constructor(app: PageApp, id: string) {
    this.#app = app;
    this.#id = id;
    this.#questions = new QuestionCards((request, answer) => app.client.answer(id, request, answer));
    this.#composer = new Composer((text) => this.#send(text));
    const pill = h('p', { class: 'pill', is: { role: 'status' } }, this.#dot, this.#word);
    const side = h('div', { class: 'head-side' }, this.#figures, pill, this.#cancel);
    const head = h('header', { class: 'head' }, h('div', { class: 'head-line' }, this.#title, side), this.#about);
    this.#body.append(this.#conversation.element, this.#pending);
    this.element = h(
      'div',
      { class: 'screen session' },
      head,
      this.#body,
      this.#questions.element,
      this.#composer.element,
    );
    this.#feed = new Feed({
      events: (options) => app.client.events(id, options),
      take: (event) => {
        this.#fold.take(event);
        if (event.type === 'session_end' || isAnswerable(event.type)) app.refresh();
        if (event.type === 'awaiting_tool_execution') announceInDom('It waits for a remote tool');
        this.#frame.ask();
      },
      onConnection: app.onConnection,
      onEnd: (error) => error !== undefined && app.onProblem(error),
    });
    this.#frame.ask();
  }

  get title(): string {
    return titled(this.#fold.title === '' ? 'session' : this.#fold.title, this.#fold.cwd);
  }

  stop(): void {
    this.#feed.stop();
    this.#frame.stop();
  }

  #draw(): void {
    const fold = this.#fold;
    setDomText(this.#title, fold.title === '' ? 'New session' : fold.title);
    setDomText(this.#about, [fold.cwd, fold.model].filter(Boolean).join('  ·  '));
    const tokens = pageTokensOf(fold.usage);
    const cost = fold.cost === undefined ? '' : ` · ${pageDollars(fold.cost)}`;
    setDomText(this.#figures, tokens === 0 ? '' : `${pageCount(tokens)} tokens${cost}`);
    const { state, word } = sessionStandingOnScreen(fold);
    markDomElement(this.#dot, 'data-state', state);
    setDomText(this.#word, word);
    showDomElement(this.#cancel, fold.status !== 'idle');
    this.#conversation.update(fold.conversation, 'Nothing was said yet. Write the first message below.');
    this.#showPending();
    this.#questions.update(fold.questions, () => 'The agent');
    this.#composer.update(fold.status);
  }

  #showPending(): void {
    const cards = this.#fold.pending.map(({ name, summary, deadline }) =>
      h(
        'article',
        { class: 'waiting-call' },
        domStateMark('asking'),
        h(
          'div',
          {},
          h('code', {}, summary === '' ? name : summary),
          h(
            'p',
            { class: 'quiet' },
            `It waits for a client that runs ${name}, until ${new Date(deadline).toLocaleTimeString()}.`,
          ),
        ),
      ),
    );
    fillDomElement(this.#pending, cards);
    showDomElement(this.#pending, cards.length > 0);
  }

  async #send(content: string): Promise<void> {
    const cancelPending = this.#fold.status === 'awaiting_tool_execution';
    const wanted = { content, ...(cancelPending && { cancelPending }) };
    // Its events are those that are followed already.
    const response = await this.#app.client.openExecution(this.#id, wanted);
    this.#conversation.followEnd();
    await response.body?.cancel();
    this.#app.refresh();
  }

  async #stopTurn(): Promise<void> {
    this.#cancel.disabled = true;
    await this.#app.client.cancel(this.#id).catch((error: unknown) => announceInDom(pageErrorWords(error)));
    this.#cancel.disabled = false;
  }
}

/** A box to write in: Enter sends, with Shift it is a new line. */
class Composer {
  readonly element: HTMLElement;
  readonly #text = h('textarea', { is: { rows: 2, 'aria-label': 'Message', placeholder: 'Write to the agent' } });
  readonly #press = h('button', { class: 'primary', is: { type: 'submit' } }, 'Send');
  readonly #hint = h('p', { class: 'quiet' });
  readonly #problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
  readonly #send: (text: string) => Promise<void>;
  #isSending = false;

  constructor(send: (text: string) => Promise<void>) {
    this.#send = send;
    this.element = h(
      'form',
      { class: 'composer', on: { submit: (event) => void this.#submit(event) } },
      this.#problem,
      h('div', { class: 'composer-line' }, this.#text, this.#press),
      this.#hint,
    );
    this.#text.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) void this.#submit(event);
    });
  }

  update(status: SessionFold['status']): void {
    const isBusy = status === 'running' || this.#isSending;
    this.#press.disabled = isBusy;
    setDomText(this.#hint, HINTS[status]);
  }

  async #submit(event: Event): Promise<void> {
    event.preventDefault();
    const text = this.#text.value.trim();
    if (text === '' || this.#press.disabled) return;
    this.#isSending = true;
    this.#press.disabled = true;
    showDomElement(this.#problem, false);
    try {
      await this.#send(text);
      this.#text.value = '';
    } catch (error) {
      showDomElement(this.#problem, true);
      setDomText(this.#problem, pageErrorWords(error));
    } finally {
      this.#isSending = false;
      this.#press.disabled = false;
    }
  }
}

const HINTS = {
  idle: 'Enter sends, Shift and Enter begin a new line.',
  running: 'It is at work. Stop it, or wait for its end, to write the next message.',
  awaiting_tool_execution: 'It waits for remote calls. A message gives them up.',
} as const;

function sessionStandingOnScreen({ status, ending }: SessionFold): { readonly state: string; readonly word: string } {
  if (status === 'running') return { state: 'thinking', word: 'At work' };
  if (status === 'awaiting_tool_execution') return { state: 'asking', word: 'Waits for a remote tool' };
  if (ending === undefined) return { state: 'idle', word: 'Idle' };
  const states = { done: 'landed', incomplete: 'throttled', error: 'failed', cancelled: 'cancelled' } as const;
  const said = { done: 'Done', incomplete: 'Incomplete', error: 'Failed', cancelled: 'Cancelled' } as const;
  return { state: states[ending], word: said[ending] };
}
