// A login at a server: the user agrees in a browser, and the server gives tokens.
//
// Guarantees
//   1. The code is exchanged with PKCE, for a redirect that carries the state of this login.
//   2. The entry's headers are never sent to the server that issues tokens.

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { OAuthClientProvider, OAuthDiscoveryState } from '@modelcontextprotocol/client';
import type { HttpReach, OauthSettings } from '../../server-spec.ts';
import { authFetch, INSECURE, isLoopback } from './auth-fetch.ts';
import type { RegisteredClient, StoredLogin, Tokens } from './stored-login.ts';

export type LoginSteps = {
  /** Where the browser comes back to. */
  readonly redirectUrl: string;
  /** Shows the user the address to open. */
  readonly show: (address: URL) => Promise<void>;
  /** The parameters that the browser came back with. */
  readonly returned: () => Promise<URLSearchParams>;
};

/** Throws an error whose message is for the user. */
export async function logIn({ url, headers, oauth = {} }: HttpReach, steps: LoginSteps): Promise<StoredLogin> {
  const server = new URL(url);
  if (server.protocol !== 'https:' && !isLoopback(server)) throw new Error(`${INSECURE}, but its address is ${url}`);
  const { auth, extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client');
  const fetchFn = authFetch(url);
  const refusal = await firstAnswer(url, { fetchFn, headers });
  if (refusal.status !== 401)
    throw new Error(
      `it asks for no login: it answers HTTP ${refusal.status} where a server that wants one answers 401`,
    );
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refusal);
  const attempt = new LoginAttempt(oauth, steps.redirectUrl);
  const wanted = oauth.scope ?? scope;
  const options = {
    serverUrl: url,
    fetchFn,
    ...(resourceMetadataUrl && { resourceMetadataUrl }),
    ...(wanted !== undefined && { scope: wanted }),
  };
  await auth(attempt, options);
  if (attempt.address === undefined) throw new Error('the server has named no address to log in at');
  await steps.show(attempt.address);
  const returned = await steps.returned();
  const { code, iss } = attempt.check(returned);
  await auth(attempt, { ...options, authorizationCode: code, ...(iss !== null && { iss }) });
  return attempt.stored();
}

/** The server's answer to a client without a login. */
async function firstAnswer(
  url: string,
  { fetchFn, headers }: { readonly fetchFn: typeof fetch; readonly headers: HttpReach['headers'] },
): Promise<Response> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'drover', version: '0' } };
  const response = await fetchFn(url, {
    method: 'POST',
    redirect: 'error',
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
  });
  await response.body?.cancel();
  return response;
}

class LoginAttempt implements OAuthClientProvider {
  readonly redirectUrl: string;
  /** Where the user agrees. */
  address: URL | undefined;
  readonly #scope: string | undefined;
  readonly #state = randomBytes(24).toString('base64url');
  #client: RegisteredClient | undefined;
  #tokens: Tokens | undefined;
  #verifier = '';
  #discovery: OAuthDiscoveryState | undefined;
  #resource: string | undefined;

  constructor({ clientId, clientSecret, scope }: OauthSettings, redirectUrl: string) {
    this.redirectUrl = redirectUrl;
    this.#scope = scope;
    if (clientId === undefined) return;
    this.#client = { client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) };
  }

  get clientMetadata() {
    return {
      client_name: 'drover',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      ...(this.#scope !== undefined && { scope: this.#scope }),
    };
  }

  /** Throws if it is not an answer to this login. */
  check(returned: URLSearchParams): { readonly code: string; readonly iss: string | null } {
    const state = Buffer.from(returned.get('state') ?? '');
    const own = Buffer.from(this.#state);
    if (state.length !== own.length || !timingSafeEqual(state, own))
      throw new Error('the browser came back from another login; try again');
    const error = returned.get('error');
    if (error !== null) throw new Error(`the login was refused: ${returned.get('error_description') ?? error}`);
    const code = returned.get('code');
    if (code === null) throw new Error('the browser came back without a code; try again');
    return { code, iss: returned.get('iss') };
  }

  stored(): StoredLogin {
    if (this.#client === undefined || this.#tokens === undefined || this.#discovery === undefined)
      throw new Error('the server gave no tokens');
    return { client: this.#client, tokens: this.#tokens, discovery: this.#discovery, resource: this.#resource };
  }

  state = () => this.#state;
  clientInformation = (at?: { readonly issuer: string }) => this.#client && { ...at, ...this.#client };
  saveClientInformation = (client: RegisteredClient) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens: Tokens) => void (this.#tokens = tokens);
  redirectToAuthorization = (address: URL) => void (this.address = address);
  saveCodeVerifier = (verifier: string) => void (this.#verifier = verifier);
  codeVerifier = () => this.#verifier;
  saveDiscoveryState = (state: OAuthDiscoveryState) => void (this.#discovery = state);
  discoveryState = () => this.#discovery;
  saveResourceUrl = (url: string) => void (this.#resource = url);
}
