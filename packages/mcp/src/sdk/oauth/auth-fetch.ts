// The fetch of logins: it talks to addresses that a server names, so it goes over https only. A server on this machine
// may name http addresses on this machine.

import { boundedFetch } from '../bounded-fetch.ts';

export const INSECURE = 'a login needs https';

export function authFetch(serverUrl: string): typeof fetch {
  const isLocal = isLoopback(new URL(serverUrl));
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.protocol !== 'https:' && !(isLocal && isLoopback(url)))
      throw new Error(`${INSECURE}, but the server names ${url.origin}`);
    return boundedFetch(input, init);
  };
}

export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}
