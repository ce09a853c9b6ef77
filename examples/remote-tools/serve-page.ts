// Serves the page of this folder, and hands on what it asks of `drover serve`.
//
//   drover serve                                          in one terminal
//   node examples/remote-tools/serve-page.ts              in another; drover's address and a port may follow
//
// drover answers no page but its own, so a page of yours asks through a server of yours: here one that hands on
// whatever is under /v1 as it comes. It adds no token: whoever has none gets nothing this way either. The page
// needs nothing but the client's modules, which any bundler would put into one file; here each is served by
// itself, with its types taken off.

import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';

const [drover = 'http://127.0.0.1:7117', port = '0'] = process.argv.slice(2);
const here = new URL('./page/', import.meta.url);
const client = new URL('../../packages/client/src/', import.meta.url);

const pages: Readonly<Record<string, string>> = {
  '/': 'text/html; charset=utf-8',
  '/page.js': 'text/javascript; charset=utf-8',
  '/page.css': 'text/css; charset=utf-8',
};

async function file(path: string): Promise<{ readonly body: string; readonly type: string } | undefined> {
  const type = pages[path];
  if (type !== undefined) return { body: await readFile(new URL(path.slice(1) || 'index.html', here), 'utf8'), type };
  const [, module] = /^\/client\/([a-z-]+\.ts)$/.exec(path) ?? [];
  if (module === undefined) return undefined;
  const body = stripTypeScriptTypes(await readFile(new URL(module, client), 'utf8'));
  return { body, type: 'text/javascript; charset=utf-8' };
}

/** To drover it comes from a program and not from a page. */
function handOn(asked: IncomingMessage, answer: ServerResponse): void {
  const { host: _, origin: __, referer: ___, 'sec-fetch-site': ____, ...headers } = asked.headers;
  const forwarded = request(new URL(asked.url ?? '/', drover), { method: asked.method ?? 'GET', headers });
  forwarded.on('response', (response) => {
    answer.writeHead(response.statusCode ?? 502, response.headers);
    answer.flushHeaders();
    pipeline(response, answer, () => undefined);
  });
  forwarded.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()));
  answer.on('close', () => forwarded.destroy());
  pipeline(asked, forwarded, () => undefined);
}

async function answerPage(path: string, answer: ServerResponse): Promise<void> {
  const found = await file(path).catch(() => undefined);
  if (found === undefined) return void answer.writeHead(404).end();
  const policy = "default-src 'self'; img-src data:";
  answer.writeHead(200, { 'content-type': found.type, 'content-security-policy': policy }).end(found.body);
}

const server = createServer((asked, answer) => {
  if (asked.url?.startsWith('/v1/') === true) handOn(asked, answer);
  else void answerPage(asked.url ?? '/', answer);
});

server.listen(Number(port), '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/\n`);
});
