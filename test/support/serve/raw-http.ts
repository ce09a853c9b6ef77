// Hand-written HTTP requests on a socket that no client would send.

import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export type RawAnswer = { readonly status: number; readonly head: string; readonly body: string };

/** A socket that stays open until the test ends and ignores errors. */
export async function socketTo(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('close', () => reject(new Error('the connection was not taken')));
  });
  return socket;
}

/** All bytes until the other side closes. */
export async function allOf(socket: Socket): Promise<RawAnswer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
  return parsed(Buffer.concat(chunks).toString('utf8'));
}

/** Sends these bytes unchanged; they should ask for the connection to be closed. */
export async function raw(port: number, text: string): Promise<RawAnswer> {
  const socket = await socketTo(port);
  socket.write(text);
  return allOf(socket);
}

function parsed(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0), head, body: rest.join('\r\n\r\n') };
}

/** The lines of a request, with any content. */
export function request(first: string, headers: readonly string[], body = ''): string {
  return `${[first, ...headers, 'connection: close'].join('\r\n')}\r\n\r\n${body}`;
}
