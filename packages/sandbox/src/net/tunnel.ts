// CONNECT: a byte tunnel between a client in the box and an allowed target. Half-closes pass through, so each
// direction ends on its own; a socket that fails or idles takes the other one with it.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { decideConnection, type Policy } from './decide.ts';
import { type Dialing, dialTarget } from './dial.ts';
import { Refusal } from './refusal.ts';

export type Opening = { readonly request: IncomingMessage; readonly client: Socket; readonly head: Buffer };

/** Opens the tunnel, or throws a Refusal before anything was answered. */
export async function openProxyTunnel(policy: Policy, dialing: Dialing, opening: Opening): Promise<void> {
  const { request, client, head } = opening;
  const { headers } = request;
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
    throw new Refusal(400, 'a CONNECT request has no body');
  const allowed = await decideConnection(policy, request.url ?? '');
  if (client.destroyed) return;
  const remote = await dialTarget(dialing, allowed);
  if (client.destroyed) {
    remote.destroy();
    return;
  }
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) remote.write(head);
  joinTunnelSockets(client, remote);
}

function joinTunnelSockets(client: Socket, remote: Socket): void {
  // Closing follows an error too. The other socket first flushes the bytes that had arrived.
  client.once('close', () => remote.destroySoon());
  remote.once('close', () => client.destroySoon());
  client.pipe(remote).pipe(client);
}
