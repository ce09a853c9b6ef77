// The page: who may see it, what there is, and the screen that the address names.

import { DroverClient } from '@drover/client/client';
import { DroverProblem } from '@drover/client/problem';
import type { Connection } from '@drover/client/stream';
import { type PageApp, type Screen, pageErrorWords } from './app.ts';
import { Attention } from './attention.ts';
import { domButton, h, markDomElement, setDomText, showDomElement, domStateMark } from './dom.ts';
import { newRunScreen, newSessionScreen } from './screens/new-work.ts';
import { runScreen } from './screens/run-screen.ts';
import { sessionScreen } from './screens/session-screen.ts';
import { type SidebarLists, Sidebar } from './screens/sidebar.ts';
import { forgetSignInToken, tokenKeptBySignIn, signInScreen, takeSignInTicket } from './screens/sign-in.ts';

const LIST_MS = 4_000;
const LIST_HIDDEN_MS = 15_000; // for the title, the icon and notifications

async function beginPage(): Promise<void> {
  const isTicket = location.hash.startsWith('#ticket=');
  const token = (await takeSignInTicket()) ?? tokenKeptBySignIn();
  if (token !== undefined) new Page(token);
  else askForTokenOnPage(isTicket ? 'This address has been used, or is too old.' : '');
}

function askForTokenOnPage(said: string): void {
  const check = async (token: string) => {
    await new DroverClient({ baseUrl: location.origin, token }).runs();
    new Page(token);
  };
  document.body.replaceChildren(signInScreen(check, said));
  document.getElementById('token')?.focus();
}

class Page {
  readonly #app: PageApp;
  readonly #attention = new Attention();
  readonly #sidebar = new Sidebar();
  readonly #main = h('main', { is: { id: 'main', tabindex: -1 } });
  readonly #banner = h('div', { class: 'banner', is: { role: 'status', hidden: true } });
  readonly #folder = h('bdi', {});
  readonly #link = domStateMark('idle');
  readonly #linkWord = h('span', { class: 'quiet' }, 'connecting');
  readonly #shell: HTMLElement;
  readonly #stop = new AbortController();
  #kept: readonly SidebarLists[] | undefined; // unknown until they were listed
  #screen: Screen | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #route = '';
  #isListing = false;
  #isStale = false;

  constructor(token: string) {
    const client = new DroverClient({ baseUrl: location.origin, token });
    const server = client.server();
    this.#app = {
      client,
      server: () => server,
      onConnection: (connection) => this.#connection(connection),
      onProblem: (error) => this.#problem(error),
      isLive: (id) => this.#keptAs(id)?.live ?? true,
      refresh: () => void this.#list(),
      go: (route) => (location.hash = route),
    };
    this.#shell = this.#build();
    document.body.replaceChildren(this.#shell);
    const { signal } = this.#stop;
    addEventListener('hashchange', () => this.#open(), { signal });
    document.addEventListener('visibilitychange', () => document.hidden || void this.#list(), { signal });
    this.#open();
    void this.#list();
    server.then(
      ({ root }) => this.#nameFolder(root),
      (error: unknown) => this.#problem(error),
    );
  }

  #nameFolder(root: string): void {
    setDomText(this.#folder, root);
    markDomElement(this.#folder, 'title', root);
  }

  #build(): HTMLElement {
    const brand = h('a', { class: 'brand', is: { href: '#/' } }, h('b', {}, 'drover'));
    const out = domButton('Sign out', () => this.#leave(''), { class: 'plain' });
    const link = h('span', { class: 'link' }, this.#link, this.#linkWord);
    const folder = h('span', { class: 'served quiet' }, this.#folder);
    const top = h('header', { class: 'top' }, brand, folder, link, this.#attention.press, out);
    const skip = h('a', { class: 'skip', is: { href: '#main' } }, 'Skip to the content');
    skip.addEventListener('click', (event) => {
      event.preventDefault(); // the address says which screen it is
      this.#main.focus();
    });
    const said = h('p', { class: 'unseen', is: { id: 'announcements', role: 'status', 'aria-live': 'polite' } });
    return h('div', { class: 'shell' }, skip, top, this.#banner, this.#sidebar.element, this.#main, said);
  }

  #open(): void {
    const route = location.hash === '' ? '#/' : location.hash;
    if (route === this.#route) return;
    const isFirst = this.#route === '';
    this.#route = route;
    this.#reopen();
    markDomElement(this.#shell, 'data-route', route === '#/' ? 'list' : 'screen');
    // Keyboard users continue from what they opened.
    if (isFirst) return this.#draw();
    this.#main.focus({ preventScroll: true });
    this.#main.scrollTop = 0;
    scrollTo(0, 0);
    this.#draw();
  }

  #reopen(): void {
    this.#screen?.stop();
    showDomElement(this.#banner, false);
    this.#screen = this.#screenOf(this.#route);
    this.#main.replaceChildren(this.#screen.element);
  }

  #screenOf(route: string): Screen {
    const [, kind, id = ''] = route.split('/');
    if (kind === 'runs') return runScreen(this.#app, id);
    if (kind === 'sessions') return sessionScreen(this.#app, id);
    if (kind === 'new') return id === 'run' ? newRunScreen(this.#app) : newSessionScreen(this.#app);
    return welcomeScreen();
  }

  /** Refreshes the list: often while the page is visible. A refresh during another one follows it. */
  async #list(): Promise<void> {
    this.#isStale = this.#isListing;
    if (this.#isListing) return;
    this.#isListing = true;
    await this.#listOnce();
    this.#isListing = false;
    if (this.#isStale) await this.#list();
  }

  async #listOnce(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const { client } = this.#app;
      const [{ runs }, { sessions }] = await Promise.all([client.runs(), client.sessions()]);
      const here = this.#route.split('/').at(-1) ?? '';
      const before = this.#keptAs(here);
      this.#kept = [
        ...runs.map((row) => ({ ...row, kind: 'run' as const })),
        ...sessions.map((row) => ({ ...row, kind: 'session' as const })),
      ];
      this.#connection({ state: 'open' });
      // A process has resumed a run that was over.
      const isOver = before?.kind === 'run' && !before.live;
      if (isOver && this.#keptAs(here)?.updatedAt !== before.updatedAt) this.#reopen();
    } catch (error) {
      if (error instanceof DroverProblem && error.status === 401)
        return this.#leave('The server does not take this token any more.');
      this.#connection({ state: 'lost', retryInMs: LIST_MS, reason: pageErrorWords(error) });
    }
    this.#draw();
    clearTimeout(this.#timer);
    const nextMs = document.hidden ? LIST_HIDDEN_MS : LIST_MS;
    if (!this.#stop.signal.aborted) this.#timer = setTimeout(() => void this.#list(), nextMs);
  }

  #keptAs(id: string): SidebarLists | undefined {
    return this.#kept?.find((kept) => kept.id === id);
  }

  #draw(): void {
    this.#sidebar.update(this.#kept, this.#route, Date.now());
    document.title = this.#attention.update(this.#kept ?? [], this.#screen?.title() ?? '');
  }

  #connection(connection: Connection): void {
    const isOpen = connection.state === 'open';
    markDomElement(this.#link, 'data-state', isOpen ? 'landed' : 'failed');
    setDomText(this.#linkWord, isOpen ? 'connected' : 'not connected');
    if (isOpen) {
      if (this.#banner.dataset['kind'] === 'connection') showDomElement(this.#banner, false);
      return;
    }
    // A stream that reopens at once is not worth a message.
    if (connection.retryInMs < 100) return;
    const again = Math.max(1, Math.ceil(connection.retryInMs / 1_000));
    this.#tell('connection', `The connection is lost: ${connection.reason}. Trying again in ${again} s.`);
  }

  #problem(error: unknown): void {
    if (error instanceof DroverProblem && error.status === 401)
      return this.#leave('The server does not take this token any more.');
    if (!(error instanceof DroverProblem && error.status === 404)) return this.#tell('problem', pageErrorWords(error));
    this.#screen?.stop();
    this.#screen = missing();
    this.#main.replaceChildren(this.#screen.element);
    this.#draw();
  }

  #tell(kind: 'connection' | 'problem', text: string): void {
    this.#banner.dataset['kind'] = kind;
    setDomText(this.#banner, text);
    showDomElement(this.#banner, true);
  }

  #leave(said: string): void {
    forgetSignInToken();
    clearTimeout(this.#timer);
    this.#stop.abort();
    this.#screen?.stop();
    askForTokenOnPage(said);
  }
}

function missing(): Screen {
  const back = h('a', { class: 'press', is: { href: '#/' } }, 'To the list');
  const about = 'It was removed, or it belongs to another machine.';
  const parts = [h('h1', {}, 'This is not here'), h('p', { class: 'quiet' }, about), h('p', {}, back)];
  return {
    element: h('div', { class: 'screen welcome', is: { role: 'alert' } }, ...parts),
    title: () => 'Not here',
    stop: () => undefined,
  };
}

function welcomeScreen(): Screen {
  const element = h(
    'div',
    { class: 'screen welcome' },
    h('h1', {}, 'Nothing chosen'),
    h(
      'p',
      { class: 'quiet' },
      'Choose a run or a session on the left to watch it, or start a new one. Runs that were started in a terminal are here too, live.',
    ),
  );
  return { element, title: () => '', stop: () => undefined };
}

void beginPage();
