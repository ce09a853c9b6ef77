// Cost of many readers of one session: events per second from `drover serve` to a hundred readers, compared with a bare
// node:http server that writes the same bytes to as many. `node bench/server.ts` measures nothing else, and needs a
// bundle.
//
// Both servers run alternately in their own processes, with the same readers in this one. The clock starts when the
// first reader gets the first piece of the answer, and stops when all have its end. The bare server is measured twice:
// with one write per event, as a simple server would do it, and with one write for all events of one read from the
// model, which is the least possible work.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { startRehearsal } from '@drover/rehearsal/server';
import { newFolder } from './folder.ts';

const READERS = 100;
const EVENTS = 4_000;
const TIMES = 5;
const BURST = 64; // events that arrive in one read, roughly
const AIM = 1;

const root = join(import.meta.dirname, '..');
const BEGINNING = 'event: text_delta';
const END = 'event: session_end';

/** The lines to print. */
export async function lines(): Promise<readonly string[]> {
  const folder = newFolder();
  const file = join(folder, 'frames');
  const rates: Record<'bare' | 'burst' | 'drover', number[]> = { bare: [], burst: [], drover: [] };
  for (let n = 0; n <= TIMES; n++) {
    const drover = await droverRate(folder);
    writeFileSync(file, drover.text);
    const bare = await bareRate(file, 1);
    const burst = await bareRate(file, BURST);
    // The first run of each server warms the disk and the compiler.
    if (n === 0) continue;
    rates.drover.push(drover.rate);
    rates.bare.push(bare.rate);
    rates.burst.push(burst.rate);
  }
  const [bare, burst, drover] = [median(rates.bare), median(rates.burst), median(rates.drover)];
  const ratio = drover / bare;
  return [
    `one session to ${READERS} readers, events/s: bare ${thousands(bare)}, drover ${thousands(drover)}: ${ratio.toFixed(2)}x (aim ${AIM}x or more) ${ratio >= AIM ? 'ok' : 'OVER'}; bare, ${BURST} at once: ${thousands(burst)}`,
  ];
}

type Heard = { readonly rate: number; readonly text: string };

async function droverRate(folder: string): Promise<Heard> {
  const model = await startRehearsal({ answers: [{ text: { repeat: 'word ', times: EVENTS } }], chunkChars: 5 });
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const server = spawn(
    process.execPath,
    [join(root, 'dist', 'drover.cjs'), 'serve', '--port', '0', '--json', '--model', 'anthropic/any'],
    {
      cwd: folder,
      env: { ...env, HOME: folder, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'x' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  try {
    const { port, tokenFile } = JSON.parse(await firstLine(server)) as { port: number; tokenFile: string };
    const headers = { authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
    const { id } = JSON.parse(await asked(port, '/v1/sessions', headers, {})) as { id: string };
    const readers = await listening(port, `/v1/sessions/${id}/events`, headers);
    const told = asked(port, `/v1/sessions/${id}/execute`, headers, { content: 'go' });
    const heard = await readers.heard;
    await told;
    return heard;
  } finally {
    await ended(server);
    await model.close();
  }
}

async function bareRate(file: string, burst: number): Promise<Heard> {
  const server = spawn(process.execPath, [join(root, 'bench', 'bare', 'stream.mjs'), file, String(burst)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const port = Number(await firstLine(server));
    const readers = await listening(port, '/', {});
    await asked(port, '/', {}, {});
    return await readers.heard;
  } finally {
    await ended(server);
  }
}

async function listening(
  port: number,
  path: string,
  headers: Record<string, string>,
): Promise<{ readonly heard: Promise<Heard> }> {
  const agent = new Agent({ maxSockets: READERS });
  const responses = await Promise.all(
    Array.from({ length: READERS }, async () => {
      const asking = get({ port, host: '127.0.0.1', path, headers, agent });
      const [response] = (await once(asking, 'response')) as [IncomingMessage];
      return response;
    }),
  );
  return { heard: hear(responses) };
}

async function hear(responses: readonly IncomingMessage[]): Promise<Heard> {
  let begun = 0;
  const read = (response: IncomingMessage, keep: boolean): Promise<Buffer[]> =>
    new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let tail = '';
      response.on('data', (chunk: Buffer) => {
        const text = tail + chunk.toString('latin1');
        if (begun === 0 && text.includes(BEGINNING)) begun = performance.now();
        tail = text.slice(-END.length);
        if (keep) chunks.push(chunk);
        if (!text.includes(END)) return;
        // The rest of the last event is a few bytes, which arrive with the end or do not matter.
        response.destroy();
        resolve(chunks);
      });
      response.on('error', (error) => (response.destroyed ? undefined : reject(error)));
    });
  const [first = []] = await Promise.all(responses.map((response, at) => read(response, at === 0)));
  const seconds = (performance.now() - begun) / 1_000;
  const text = Buffer.concat(first).toString('utf8');
  const events = text.split(BEGINNING).length - 1;
  if (events < EVENTS) throw new Error(`only ${events} of ${EVENTS} events were heard: ${text.slice(-2_000)}`);
  return { rate: (events * responses.length) / seconds, text };
}

async function asked(port: number, path: string, headers: Record<string, string>, body: object): Promise<string> {
  const asking = request({
    port,
    host: '127.0.0.1',
    path,
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
  });
  asking.end(JSON.stringify(body));
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return text;
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = '';
  while (!text.includes('\n')) text += String((await once(child.stdout ?? child, 'data'))[0]);
  return text;
}

async function ended(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function thousands(value: number): string {
  return Math.round(value).toLocaleString('en');
}
