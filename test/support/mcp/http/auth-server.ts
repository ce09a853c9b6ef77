// An authorization server on loopback, and what an MCP server that trusts it answers to a request without its token.
// Its user agrees to everything: `agree` does what a browser would do.

import { createHash, randomUUID } from 'node:crypto';
import { answering, Listener } from './listener.ts';

export type AuthServer = {
  readonly origin: string;
  /** For `before` of the MCP server: 401 without a good token. */
  readonly guard: (request: Request) => Promise<Response | undefined>;
  /** Every request: path and headers. */
  readonly seen: readonly { readonly path: string; readonly headers: Headers }[];
  /** Clients that registered, by id. */
  readonly clients: ReadonlyMap<string, Registered>;
  /** Access tokens in the order of their issue, and how each was granted. */
  readonly issued: readonly { readonly access: string; readonly refresh: string; readonly by: string }[];
  /** From now on all access tokens so far are refused. */
  readonly expire: () => void;
  /** From now on refresh tokens are refused, too. */
  readonly revoke: () => void;
  /** Opens the address and follows it back, as a browser does. */
  readonly agree: (address: string) => Promise<number>;
};

type Registered = { readonly redirect_uris: readonly string[]; readonly grant_types: readonly string[] };
type Code = { readonly challenge: string; readonly redirect: string; readonly client: string };

const refused = (error: string) => Response.json({ error }, { status: 400 });

export async function authServer(resource: () => string, { registers = true } = {}): Promise<AuthServer> {
  const seen: { path: string; headers: Headers }[] = [];
  const clients = new Map<string, Registered>();
  const codes = new Map<string, Code>();
  const issued: { access: string; refresh: string; by: string }[] = [];
  const good = { access: new Set<string>(), refresh: new Set<string>() };
  const issue = (by: string) => {
    const token = { access: `access-${randomUUID()}`, refresh: `refresh-${randomUUID()}`, by };
    issued.push(token);
    good.access.add(token.access);
    good.refresh.add(token.refresh);
    return Response.json({ access_token: token.access, refresh_token: token.refresh, token_type: 'Bearer' });
  };
  const exchange = (form: URLSearchParams) => {
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const hashed = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    const isSame = form.get('client_id') === code?.client && form.get('redirect_uri') === code?.redirect;
    return code !== undefined && isSame && hashed === code.challenge ? issue('code') : refused('invalid_grant');
  };
  const routes: Readonly<Record<string, (request: Request, url: URL) => Promise<Response>>> = {
    '/.well-known/oauth-authorization-server': async () => Response.json(metadata(listener.origin, registers)),
    '/register': async (request) => {
      const client = (await request.json()) as Registered;
      const id = `client-${clients.size + 1}`;
      clients.set(id, client);
      return Response.json({ ...client, client_id: id }, { status: 201 });
    },
    '/authorize': async (_, { searchParams: asked }) => {
      const code = randomUUID();
      const redirect = asked.get('redirect_uri') ?? '';
      const client = asked.get('client_id') ?? '';
      codes.set(code, { challenge: asked.get('code_challenge') ?? '', redirect, client });
      const back = new URL(redirect);
      back.search = String(new URLSearchParams({ code, state: asked.get('state') ?? '', iss: listener.origin }));
      return new Response(null, { status: 302, headers: { location: back.href } });
    },
    '/token': async (request) => {
      const form = new URLSearchParams(await request.text());
      if (form.get('grant_type') === 'authorization_code') return exchange(form);
      // Each refresh token works once.
      return good.refresh.delete(form.get('refresh_token') ?? '') ? issue('refresh') : refused('invalid_grant');
    },
  };
  const listener: Listener = await Listener.open(
    answering(
      async (request) => {
        const url = new URL(request.url);
        seen.push({ path: url.pathname, headers: request.headers });
        return (await routes[url.pathname]?.(request, url)) ?? new Response(null, { status: 404 });
      },
      () => listener.origin,
    ),
  );
  const guard = async ({ url, headers }: Request) => {
    const { pathname, origin } = new URL(url);
    if (pathname.startsWith('/.well-known/oauth-protected-resource'))
      return Response.json({
        resource: resource(),
        authorization_servers: [listener.origin],
        scopes_supported: ['use'],
      });
    if (pathname !== '/mcp') return new Response(null, { status: 404 });
    if (good.access.has((headers.get('authorization') ?? '').replace('Bearer ', ''))) return undefined;
    const place = `${origin}/.well-known/oauth-protected-resource/mcp`;
    return new Response(null, { status: 401, headers: { 'www-authenticate': `Bearer resource_metadata="${place}"` } });
  };
  return {
    origin: listener.origin,
    guard,
    seen,
    clients,
    issued,
    expire: () => good.access.clear(),
    revoke: () => {
      good.access.clear();
      good.refresh.clear();
    },
    agree: async (address) => (await fetch(address)).status,
  };
}

function metadata(origin: string, registers: boolean): object {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    ...(registers && { registration_endpoint: `${origin}/register` }),
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
  };
}
