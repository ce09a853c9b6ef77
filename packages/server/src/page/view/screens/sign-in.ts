// How the page gets its token: from a one-time ticket in its address, or by asking for it. It is kept for as long
// as the tab lives, and is never part of an address that is sent anywhere.

import { exchangeTicketForToken } from '@drover/client/client';
import { pageErrorWords } from '../app.ts';
import { h, setDomText, showDomElement } from '../dom.ts';

const KEY = 'drover.token';

export function tokenKeptBySignIn(): string | undefined {
  return sessionStorage.getItem(KEY) ?? undefined;
}

export function forgetSignInToken(): void {
  sessionStorage.removeItem(KEY);
}

/** Exchanges the ticket of this address, if there is one, and takes it out of the address. */
export async function takeSignInTicket(): Promise<string | undefined> {
  const ticket = /^#ticket=(.+)$/.exec(location.hash)?.[1];
  if (ticket === undefined) return undefined;
  history.replaceState(undefined, '', `${location.pathname}#/`);
  const token = await exchangeTicketForToken(ticket, { baseUrl: location.origin }).catch(() => undefined);
  if (token !== undefined) sessionStorage.setItem(KEY, token);
  return token;
}

/** Asks until there is a token that the server takes. */
export function signInScreen(check: (token: string) => Promise<void>, said: string): HTMLElement {
  const input = h('input', {
    is: { id: 'token', type: 'password', autocomplete: 'off', required: true, spellcheck: 'false' },
  });
  const problem = h('p', { class: 'problem', is: { role: 'alert', hidden: said === '' } }, said);
  const press = h('button', { class: 'primary', is: { type: 'submit' } }, 'Open');
  const send = async () => {
    press.disabled = true;
    try {
      const token = input.value.trim();
      await check(token);
      sessionStorage.setItem(KEY, token);
    } catch (error) {
      showDomElement(problem, true);
      setDomText(problem, pageErrorWords(error));
    } finally {
      press.disabled = false;
    }
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void send();
  };
  const form = h(
    'form',
    { class: 'sign-in', on: { submit: onSubmit } },
    h('h1', {}, 'drover'),
    h(
      'p',
      { class: 'quiet' },
      'This server wants its token. drover serve printed an address that brings one along; otherwise it is in the file that drover serve named.',
    ),
    h('label', { is: { for: 'token' } }, 'Token'),
    h('div', { class: 'composer-line' }, input, press),
    problem,
  );
  return h('main', { class: 'sign-in-screen' }, form);
}
