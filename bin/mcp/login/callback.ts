// Where the browser comes back to after a login: a web server on this machine that answers once.

import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { UsageError } from '@drover/core/errors';
import { errorCodeOf } from '../../start/settings.ts';

const PATH = '/callback';
const PAGE = '<!doctype html><title>drover</title><p>drover has the answer. You can close this page.';

export type LoginCallback = {
  readonly url: string;
  /** Resolves to the parameters of the first answer. */
  readonly returned: Promise<URLSearchParams>;
  readonly close: () => void;
};

export async function openLoginCallback(port: number | undefined): Promise<LoginCallback> {
  const { promise: returned, resolve } = Promise.withResolvers<URLSearchParams>();
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '', 'http://localhost');
    // Browsers ask for an icon, too.
    const isAnswer = url?.pathname === PATH && (url.searchParams.has('code') || url.searchParams.has('error'));
    answer(response, isAnswer);
    if (isAnswer) resolve(url.searchParams);
  });
  server.listen(port ?? 0, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    const why = `port ${port ?? 0} cannot be used for the login (${errorCodeOf(error)})`;
    throw new UsageError(`${why}; name another callbackPort under oauth`, { cause: error });
  }
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`, returned, close };
}

function answer(response: ServerResponse, isAnswer: boolean): void {
  response.writeHead(isAnswer ? 200 : 404, { 'content-type': 'text/html; charset=utf-8', connection: 'close' });
  response.end(isAnswer ? PAGE : '');
}
