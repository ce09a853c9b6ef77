// The box's end of the network: a small program that runs inside, and the variables that point clients at it.
//
// The box has a network namespace of its own, so programs in it reach the proxy at 127.0.0.1:PORT. `RELAY` listens
// there and copies bytes to the proxy's Unix socket. It decides nothing: the proxy outside does.
//
// Rules that name a loopback address with a port (`--net localhost:4873`) are served at the same address inside. So
// clients need no proxy for loopback, and `NO_PROXY` can keep the servers that tests start inside the box working.
//
// Not covered: the JVM (Maven, Gradle) reads no proxy variables; pass -Dhttps.proxyHost and -Dhttps.proxyPort.
// Yarn 1 retries five times, whatever it is told, when it has no network.

import { isLoopbackTarget } from './addresses.ts';
import { formatHostTarget, type HostRule } from './hosts.ts';

const PRIVILEGED_PORTS = 1_024; // the box may not listen on these

/**
 * A CommonJS program: `node -e RELAY PORT SOCKET [ADDRESS,PORT,TARGET]...`. Writes `ready` and a newline to stdout once
 * it listens, then closes stdout. Ends with status 1 and a line on stderr if it cannot listen.
 */
const RELAY = `'use strict';
const fs = require('node:fs');
const net = require('node:net');
const self = require('node:process');

const [port, path, ...forwards] = self.argv.slice(1);
const CONNECTIONS_MAX = 512;
const HEAD_BYTES_MAX = 16384;

for (const signal of ['SIGHUP', 'SIGINT']) self.on(signal, () => {});

function pair(client, proxy) {
  for (const [one, other] of [[client, proxy], [proxy, client]]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.destroySoon());
  }
}

function copy(client) {
  const proxy = net.connect({ path, allowHalfOpen: true });
  pair(client, proxy);
  client.pipe(proxy).pipe(client);
}

function tunnel(client, target) {
  const proxy = net.connect({ path, allowHalfOpen: true });
  pair(client, proxy);
  proxy.write('CONNECT ' + target + ' HTTP/1.1\\r\\nHost: ' + target + '\\r\\n\\r\\n');
  let head = Buffer.alloc(0);
  proxy.on('data', function read(chunk) {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\\r\\n\\r\\n');
    if (end < 0 && head.length < HEAD_BYTES_MAX) return;
    proxy.off('data', read).pause();
    if (end < 0 || !head.toString('latin1').startsWith('HTTP/1.1 200 ')) return void client.destroy();
    if (head.length > end + 4) proxy.unshift(head.subarray(end + 4));
    client.pipe(proxy).pipe(client);
  });
}

function listen(host, at, serve) {
  return new Promise((resolve, reject) => {
    const server = net.createServer({ allowHalfOpen: true, noDelay: true }, serve);
    server.maxConnections = CONNECTIONS_MAX;
    server.on('error', reject).listen({ host, port: Number(at), backlog: CONNECTIONS_MAX }, resolve);
  });
}

Promise.all([
  listen('127.0.0.1', port, copy),
  ...forwards.map((each) => {
    const [host, at, target] = each.split(',');
    return listen(host, at, (client) => tunnel(client, target));
  }),
]).then(
  () => {
    fs.writeSync(1, 'ready\\n');
    fs.closeSync(1);
    fs.openSync('/dev/null', 'w'); // takes the number, so that no connection gets it
  },
  (error) => {
    fs.writeSync(2, 'drover relay: ' + error.message + '\\n');
    self.exit(1);
  },
);
`;

/** The arguments of `node` that run the relay for these rules. */
export function proxyRelayArguments(port: number, socket: string, rules: readonly HostRule[] = []): string[] {
  const forwards = new Map<string, string>();
  for (const { host, port: at } of rules) {
    if (at === undefined || at < PRIVILEGED_PORTS) continue;
    const kind = host === 'localhost' ? 'name' : 'address';
    if (!isLoopbackTarget({ host, kind, port: at })) continue;
    const address = kind === 'name' ? '127.0.0.1' : host;
    const inside = `${address},${at}`;
    if (!forwards.has(inside)) forwards.set(inside, `${inside},${formatHostTarget({ host, port: at })}`);
  }
  return ['-e', RELAY, '--', String(port), socket, ...forwards.values()];
}

const NO_PROXY = 'localhost,127.0.0.1,::1,[::1]';
const RETRY_MS = '200'; // npm and pnpm wait 10 s otherwise

/** Variables that send package managers and HTTP clients in the box through the relay. */
export function environmentWithProxy(port: number): Record<string, string> {
  const proxy = `http://127.0.0.1:${port}`;
  return {
    ...dialRelayWithRetries(1),
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    ALL_PROXY: proxy,
    NO_PROXY,
    http_proxy: proxy, // curl reads this one in lower case only
    https_proxy: proxy,
    all_proxy: proxy,
    no_proxy: NO_PROXY,
    NODE_USE_ENV_PROXY: '1', // Node's fetch and http, from 24 on
    npm_config_proxy: proxy,
    npm_config_https_proxy: proxy,
    npm_config_noproxy: NO_PROXY,
    // Yarn 2 and later read only these, and fail on any YARN_ variable that is not a setting of theirs.
    YARN_HTTP_PROXY: proxy,
    YARN_HTTPS_PROXY: proxy,
    PIP_PROXY: proxy,
    CARGO_HTTP_PROXY: proxy,
  };
}

/** Variables that make package managers fail at once in a box without a network, instead of retrying for minutes. */
export const environmentWithoutProxy = (): Record<string, string> => ({
  ...dialRelayWithRetries(0),
  COREPACK_ENABLE_NETWORK: '0',
});

/** One retry helps against a network that fails now and then; pip also shows the proxy's sentence only on a retry. */
function dialRelayWithRetries(retries: 0 | 1): Record<string, string> {
  return {
    npm_config_fetch_retries: String(retries),
    npm_config_fetch_retry_mintimeout: RETRY_MS,
    npm_config_update_notifier: 'false',
    pnpm_config_fetch_retries: String(retries),
    pnpm_config_fetch_retry_mintimeout: RETRY_MS,
    YARN_HTTP_RETRY: String(retries),
    YARN_ENABLE_TELEMETRY: '0',
    PIP_RETRIES: String(retries),
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    CARGO_NET_RETRY: '0', // cargo takes seconds for one
  };
}
