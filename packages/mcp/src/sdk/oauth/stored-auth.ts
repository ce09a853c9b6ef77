// A connection's use of a stored login: its access token, refreshed when the server refuses it.
//
// Guarantees
//   1. A refresh token is used once: other connections and processes wait, and take what the first one got.
//   2. A login that has ended is removed, and the error names the command that logs in again.

import type { AuthProvider, OAuthError } from '@modelcontextprotocol/client';
import { authFetch } from './auth-fetch.ts';
import type { LoginStore, StoredLogin } from './stored-login.ts';

/** The user must log in; the message says how. */
export class LoginNeededError extends Error {
  override readonly name = 'LoginNeededError';
}

type Auth = AuthProvider & { readonly fetch: typeof fetch };

/** `server` is its name in the user's files. */
export function storedAuth(store: LoginStore, server: string, fetchInner: typeof fetch): Auth {
  // The token that each refused request carried.
  const carried = new WeakMap<Response, string | null>();
  return {
    fetch: async (input, init) => {
      const response = await fetchInner(input, init);
      if (response.status === 401) carried.set(response, new Headers(init?.headers).get('authorization'));
      return response;
    },
    token: async () => store.read()?.tokens.access_token,
    onUnauthorized: async ({ response, serverUrl }) =>
      store.locked(async () => {
        const login = store.read();
        if (login === undefined) throw needed(server, 'it wants a login');
        if (carried.get(response) !== `Bearer ${login.tokens.access_token}`) return; // another one has refreshed it
        if (login.tokens.refresh_token === undefined) throw ended(store, server);
        await refresh(store, server, { login, serverUrl: serverUrl.href });
      }),
  };
}

type Refreshed = { readonly login: StoredLogin; readonly serverUrl: string };

async function refresh(store: LoginStore, server: string, { login, serverUrl }: Refreshed): Promise<void> {
  const { refreshAuthorization } = await import('@modelcontextprotocol/client');
  const { client, tokens, discovery, resource } = login;
  try {
    const fresh = await refreshAuthorization(discovery.authorizationServerUrl, {
      ...(discovery.authorizationServerMetadata && { metadata: discovery.authorizationServerMetadata }),
      clientInformation: client,
      refreshToken: tokens.refresh_token ?? '',
      ...(resource !== undefined && { resource: new URL(resource) }),
      fetchFn: authFetch(serverUrl),
    });
    store.write({ ...login, tokens: { ...tokens, ...fresh } });
  } catch (error) {
    if (isRefusal(error)) throw ended(store, server);
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`its login could not be refreshed: ${why}`, { cause: error });
  }
}

const REFUSALS = new Set<unknown>(['invalid_grant', 'invalid_client', 'unauthorized_client']);

function isRefusal(error: unknown): boolean {
  return error instanceof Error && REFUSALS.has((error as OAuthError).code);
}

function ended(store: LoginStore, server: string): LoginNeededError {
  store.write(undefined);
  return needed(server, 'its login has ended');
}

function needed(server: string, why: string): LoginNeededError {
  return new LoginNeededError(`${why}; run: drover mcp login ${server}`);
}
