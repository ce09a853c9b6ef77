// A login at a server, as it is stored. It stays in the main process.

import type { OAuthClientProvider, OAuthDiscoveryState } from '@modelcontextprotocol/client';

type Saved<Method extends 'saveTokens' | 'saveClientInformation'> = Parameters<
  NonNullable<OAuthClientProvider[Method]>
>[0];
export type Tokens = Saved<'saveTokens'>;
export type RegisteredClient = Saved<'saveClientInformation'>;

export type StoredLogin = {
  readonly client: RegisteredClient;
  readonly tokens: Tokens;
  readonly discovery: OAuthDiscoveryState;
  /** The purpose of the tokens, if the server says it. */
  readonly resource: string | undefined;
};

export type LoginStore = {
  readonly read: () => StoredLogin | undefined;
  /** Undefined removes it. */
  readonly write: (login: StoredLogin | undefined) => void;
  /** Works while no other process and no other connection changes the login. */
  readonly locked: <Value>(work: () => Promise<Value>) => Promise<Value>;
};
