// The bare counterpart of a session with many readers: a server that writes frames out of a file to everybody
// who listens, so many at once, and knows nothing of where they come from.
//
//   node stream.mjs <file> <frames at once>      prints its port; GET / listens, POST / begins

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const WRITES = 64; // before others get their turn

const [file = '', burst = '1'] = process.argv.slice(2);
const single = readFileSync(file)
  .toString('utf8')
  .split('\n\n')
  .filter((frame) => frame !== '')
  .map((frame) => `${frame}\n\n`);
const frames = Array.from({ length: Math.ceil(single.length / Number(burst)) }, (_, at) =>
  Buffer.from(single.slice(at * Number(burst), (at + 1) * Number(burst)).join('')),
);

const readers = new Set();

const server = createServer((request, response) => {
  if (request.method === 'POST') {
    response.end();
    void tell();
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  readers.add(response);
  response.on('close', () => readers.delete(response));
});

async function tell() {
  for (const [at, frame] of frames.entries()) {
    const full = [...readers].filter((reader) => !reader.write(frame));
    if (at % WRITES === 0 || burst !== '1') await new Promise((resolve) => setImmediate(resolve));
    await Promise.all(full.map((reader) => new Promise((resolve) => reader.once('drain', resolve))));
  }
  for (const reader of readers) reader.end();
}

server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
