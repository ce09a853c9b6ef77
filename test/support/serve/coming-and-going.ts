// A session that emits events all the time, and a reader whose connection is cut every 50 ms.

import { setTimeout as sleep } from 'node:timers/promises';
import { DroverClient } from '@drover/client/client';
import type { Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath } from '@drover/core/journal/session-journal';
import { made, said, serveDesk } from './serve-desk.ts';
import { TOKEN } from './serve-host.ts';

const CUT_MS = 50;
const CONNECTIONS_MIN = 10;

export type CameAndWent = {
  readonly heard: readonly Recorded[]; // the received stored events
  readonly kept: readonly JsonObject[];
  readonly connections: number;
};

/** Runs turns for this long; returns the received events and the journal's. */
export async function comingAndGoing(ms: number): Promise<CameAndWent> {
  const desk = await serveDesk({
    answers: [{ thinking: 'Hm.', text: 'Word after word after word.', tokensPerSecond: 200 }],
    loop: true,
  });
  const { url } = await desk.listen();
  const client = new DroverClient({ baseUrl: url, token: TOKEN });
  const id = await made(desk);
  const until = Date.now() + ms;
  let isOver = false;
  let connections = 0;
  const telling = (async () => {
    // Connections take longer on a busy machine.
    while (Date.now() < until || connections <= CONNECTIONS_MIN) await said(desk, id, 'And then?');
    isOver = true;
  })();

  const heard: Recorded[] = [];
  let last = 0;
  const lastKept = async (): Promise<number> => (await client.snapshot(id)).seq;
  while (!isOver || last < (await lastKept())) {
    connections += 1;
    const cut = new AbortController();
    const cutting = sleep(CUT_MS).then(() => cut.abort());
    try {
      for await (const event of client.events(id, { after: last, signal: cut.signal })) {
        if (event.type.endsWith('_delta')) continue;
        heard.push(event);
        last = event.seq;
      }
    } catch (error) {
      if (!cut.signal.aborted) throw error;
    }
    await cutting;
  }
  await telling;
  const { records } = await readJournalFile(journalPath(desk.home, id));
  return { heard, kept: records.filter(({ type }) => type !== 'partial'), connections };
}
