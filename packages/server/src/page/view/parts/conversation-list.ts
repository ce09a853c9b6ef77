// The conversation of an agent as a list. Only changed entries are drawn again.

import type { Conversation, Entry } from '../../conversation.ts';
import { pageDuration } from '../../words.ts';
import { fillDomElement, GrowingText, h, markDomElement, setDomText, showDomElement, domStateMark } from '../dom.ts';
import { copyButton } from './copy.ts';
import { MarkdownBody } from './markdown/markdown-body.ts';
import { prosePart } from './prose.ts';

const NEAR_END_PX = 60;

type Row = {
  readonly element: HTMLElement;
  readonly update: (entry: Entry) => void;
  version: number;
};

export class ConversationList {
  readonly element: HTMLElement;
  readonly #list = h('ol', { class: 'entries' });
  readonly #leftOut = h('p', { class: 'quiet', is: { hidden: true } });
  readonly #empty = h('p', { class: 'empty' });
  readonly #scroller: HTMLElement;
  #conversation: Conversation | undefined;
  #version = -1;
  #rows = new Map<number, Row>();
  #isFollowing = true; // its end is in sight, and stays so
  #topPx = 0; // where it stood

  /** `scroller`: what scrolls when the list grows. */
  constructor(label: string, scroller: HTMLElement) {
    this.#scroller = scroller;
    scroller.addEventListener('scroll', () => this.#look(), { passive: true });
    new ResizeObserver(() => this.#follow()).observe(scroller);
    this.element = h(
      'div',
      { class: 'conversation', is: { role: 'log', 'aria-label': label, 'aria-live': 'off', tabindex: 0 } },
      this.#leftOut,
      this.#list,
      this.#empty,
    );
  }

  update(conversation: Conversation | undefined, empty: string): void {
    const isOther = conversation !== this.#conversation;
    if (!isOther && this.#version === (conversation?.version ?? -1)) return setDomText(this.#empty, empty);
    if (isOther) this.#rows = new Map();
    this.#conversation = conversation;
    this.#version = conversation?.version ?? -1;
    this.#isFollowing ||= isOther;
    const entries = conversation?.entries ?? [];
    const rows = new Map<number, Row>();
    for (const entry of entries) rows.set(entry.id, this.#row(entry));
    this.#rows = rows;
    fillDomElement(
      this.#list,
      [...rows.values()].map(({ element }) => element),
    );
    const leftOut = conversation?.leftOut ?? 0;
    showDomElement(this.#leftOut, leftOut > 0);
    setDomText(this.#leftOut, `${leftOut} earlier entries are left out.`);
    showDomElement(this.#empty, entries.length === 0);
    setDomText(this.#empty, empty);
    this.#follow();
  }

  /** Scrolls to the end, and stays there while the list grows. */
  followEnd(): void {
    this.#isFollowing = true;
    this.#follow();
  }

  /** Brings a call into sight and opens it. */
  reveal(callId: string): void {
    const entry = this.#conversation?.entries.find((each) => each.callId === callId && callId !== '');
    const row = entry && this.#rows.get(entry.id);
    if (row === undefined) return;
    const details = row.element.querySelector('details');
    if (details !== null) details.open = true;
    this.#isFollowing = false;
    row.element.scrollIntoView({ block: 'nearest' });
    row.element.classList.remove('found');
    void row.element.offsetWidth; // so that it shows again where it was shown before
    row.element.classList.add('found');
  }

  #look(): void {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    if (!this.element.isConnected) return;
    // Only a person goes back: what has become larger or smaller leaves it where it is.
    if (scrollHeight - scrollTop - clientHeight < NEAR_END_PX) this.#isFollowing = true;
    else if (scrollTop < this.#topPx) this.#isFollowing = false;
    this.#topPx = scrollTop;
  }

  #follow(): void {
    if (this.#isFollowing && this.element.isConnected) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #row(entry: Entry): Row {
    const known = this.#rows.get(entry.id);
    const row = known ?? { ...newConversationPartRow(entry), version: -1 };
    if (row.version === entry.version) return row;
    row.update(entry);
    markDomElement(row.element, 'data-state', entry.state);
    row.version = entry.version;
    return row;
  }
}

function newConversationPartRow(entry: Entry): Pick<Row, 'element' | 'update'> {
  switch (entry.kind) {
    case 'call':
      return callPartRow();
    case 'thinking':
      return thinkingPartRow();
    case 'heading': {
      const title = h('h3', {});
      return { element: h('li', { class: 'heading' }, title), update: (now) => setDomText(title, now.title) };
    }
    case 'note': {
      const text = h('p', {});
      return { element: h('li', { class: 'note' }, text), update: (now) => setDomText(text, now.text) };
    }
    case 'user':
      return userRow();
    case 'said':
      return saidPartRow();
  }
}

/** A prompt is shown as it was typed. */
function userRow(): Pick<Row, 'element' | 'update'> {
  const body = h('div', { class: 'prose' });
  let whole = '';
  const copy = copyButton('the prompt', () => whole);
  return {
    element: h('li', { class: 'user' }, h('div', { class: 'who' }, h('span', {}, 'Asked'), copy), body),
    update: ({ text }) => {
      whole = text;
      body.replaceChildren(...prosePart(text));
    },
  };
}

function saidPartRow(): Pick<Row, 'element' | 'update'> {
  const body = new MarkdownBody();
  let whole = '';
  const copy = copyButton('the answer', () => whole);
  return {
    element: h('li', { class: 'said' }, h('div', { class: 'who' }, h('span', {}, 'Said'), copy), body.element),
    update: ({ text, state }) => {
      whole = text;
      body.set(text, state === 'open');
    },
  };
}

function thinkingPartRow(): Pick<Row, 'element' | 'update'> {
  const live = new GrowingText();
  const details = h('details', {}, h('summary', {}, 'Thinking'), h('div', { class: 'prose' }));
  details.lastElementChild?.append(live.node);
  return { element: h('li', { class: 'thinking' }, details), update: ({ text }) => live.set(text) };
}

function callPartRow(): Pick<Row, 'element' | 'update'> {
  const state = domStateMark('running');
  const title = h('code', { class: 'call-title' });
  const word = h('span', { class: 'call-state' });
  const args = h('pre', { class: 'args' });
  const output = h('pre', { class: 'output' });
  const live = new GrowingText();
  output.append(live.node);
  const nothing = h('p', { class: 'quiet' }, 'No output yet.');
  let command = '';
  let printed = '';
  const copies = h(
    'div',
    { class: 'copies' },
    copyButton('the command', () => command, 'Copy command'),
    copyButton('the output', () => printed, 'Copy output'),
  );
  const details = h('details', {}, h('summary', {}, state, title, word), copies, args, output, nothing);
  return {
    element: h('li', { class: 'call' }, details),
    update: (entry) => {
      setDomText(title, entry.title);
      setDomText(word, wordOfConversationPart(entry));
      command = commandOf(entry);
      printed = entry.text;
      setDomText(args, entry.args);
      showDomElement(args, entry.args !== '' && entry.args !== '{}');
      live.set(entry.text);
      showDomElement(output, entry.text !== '');
      showDomElement(nothing, entry.text === '');
      markDomElement(state, 'data-state', MARKS[entry.state]);
    },
  };
}

/** The command of a shell call as it ran; of any other call its arguments. */
function commandOf({ args, title }: Entry): string {
  if (args === '') return title;
  try {
    const { command } = JSON.parse(args) as { readonly command?: unknown };
    return typeof command === 'string' ? command : args;
  } catch (error) {
    if (error instanceof SyntaxError) return args; // too long to be kept whole
    throw error;
  }
}

const MARKS = { open: 'running', held: 'asking', ok: 'done', bad: 'failed' } as const;

function wordOfConversationPart({ state, fromMs, toMs }: Entry): string {
  if (state === 'open') return 'running';
  if (state === 'held') return 'waits for its result';
  const spent = toMs === undefined ? '' : pageDuration(toMs - fromMs);
  return state === 'bad' ? `failed · ${spent}` : spent;
}
