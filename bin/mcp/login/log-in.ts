// drover mcp login and logout.

import { UsageError } from '@drover/core/errors';
import type { HttpReach, ServerSpec } from '@drover/mcp/server-spec';
import { type Io, print } from '../../io.ts';
import { cleanText } from '../../views/text/terminal-text.ts';
import { openLoginCallback } from './callback.ts';
import { openLoginStore } from './login-store.ts';

const WAIT_MS_MAX = 300_000;

/** Throws UsageError if the login fails. */
export async function logInToServer(spec: ServerSpec, { home, io }: { home: string; io: Io }): Promise<void> {
  const reach = remoteReach(spec);
  const { logIn } = await import('@drover/mcp/sdk/oauth/log-in');
  const stopped = Promise.withResolvers<never>();
  const forget = io.onStop({
    stop: () => stopped.reject(new Error('it was interrupted')),
    atOnce: () => undefined,
  });
  const callback = await openLoginCallback(reach.oauth?.callbackPort);
  const late = setTimeout(() => stopped.reject(new Error('it was not finished within 5 minutes')), WAIT_MS_MAX);
  // Not redacted: its parameters look like secrets, and the login needs them.
  const show = (address: URL) =>
    print(io.stdout, `Open this address in a browser on this machine:\n\n  ${cleanText(address.href)}\n\n`);
  try {
    const login = logIn(reach, { redirectUrl: callback.url, show, returned: () => callback.returned });
    openLoginStore(home, { server: spec.name, url: reach.url }).write(await Promise.race([login, stopped.promise]));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`no login at the MCP server ${spec.name} (${spec.place}): ${cleanText(why)}`, {
      cause: error,
    });
  } finally {
    clearTimeout(late);
    forget();
    callback.close();
  }
}

/** Whether there was a login. */
export function logOutOfServer(spec: ServerSpec, home: string): boolean {
  const store = openLoginStore(home, { server: spec.name, url: remoteReach(spec).url });
  const had = store.read() !== undefined;
  store.write(undefined);
  return had;
}

function remoteReach({ name, reach }: ServerSpec): HttpReach {
  if (reach.type === 'http') return reach;
  throw new UsageError(`the MCP server ${name} is a program; a login is for servers with a url`);
}
