// A reader whose connection is cut at random during random answers, some of which are discarded.
//
// Journal, bus and feed are real. The reader is minimal: it reconnects with the last event id and sums deltas.

import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { Bus } from '@drover/core/bus';
import { EVENTS, type Event, type Recorded } from '@drover/protocol/events';
import { Feed } from '@drover/server/streams/feed';
import { temporaryFolder } from '../agent.ts';
import { eventsOf, type Told } from './serve-desk.ts';

export type Reconnected = {
  readonly connections: number;
  readonly blocks: number;
  /** Blocks whose deltas did not sum to their text. */
  readonly wrong: readonly { readonly heard: string; readonly text: string }[];
  readonly heard: readonly Recorded[]; // stored events
  readonly kept: readonly Recorded[];
};

const LAG_MAX = 1_000;

type Chance = (below: number) => number;

/** Pseudo-random numbers, the same for the same seed. */
function chanceFrom(seed: number): Chance {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** `workers`: how many answer concurrently, as in a run. */
export async function reconnecting(connectionsMin: number, workers: number, seed: number): Promise<Reconnected> {
  const chance = chanceFrom(seed);
  const path = join(await temporaryFolder(), 'journal.jsonl');
  await writeFile(path, '');
  const kept: Recorded[] = [];
  const store = {
    append: async (events: readonly Recorded[]): Promise<void> => {
      const lasting = events.filter(({ type }) => EVENTS[type].delivery !== 'lossy');
      kept.push(...lasting);
      await appendFile(path, lasting.map((event) => `${JSON.stringify(event)}\n`).join(''));
      // The event is on disk, and readers get it a little later.
      for (let turns = chance(4); turns > 0; turns--) await turn();
    },
    note: () => undefined,
  };
  const bus = new Bus({ owner: { session: 's' }, lastSeq: 0, store, pass: (event) => [event] });
  const options = { streamBytesMax: 1e7, commentMs: 1e6, lastType: 'run_end' };
  const feed = new Feed({ path, ...options, diagnose: () => undefined, onIdle: () => undefined });
  feed.follow(bus);
  const reader = new CutReader(feed, chance);
  const telling = Array.from({ length: workers }, (_, worker) => tell({ bus, worker, chance, reader, connectionsMin }));
  const reading = reader.readAll();
  await Promise.all(telling);
  bus.emit({ type: 'run_end', outcome: 'done', exitCode: 0, tasks: [], usage: NO_USAGE }, {});
  await reading;
  bus.close();
  feed.unfollow(bus);
  return { ...reader.result(), kept };
}

const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

type Telling = {
  readonly bus: Bus;
  readonly worker: number;
  readonly chance: Chance;
  readonly reader: CutReader;
  readonly connectionsMin: number;
};

/** Streams answers, one after the other, until the reader has reconnected often enough. */
async function tell({ bus, worker, chance, reader, connectionsMin }: Telling): Promise<void> {
  const emit = (event: Event): void => {
    bus.emit(event, { worker, turn: 1, step: 1 });
    reader.told += 1;
  };
  while (reader.connections < connectionsMin) {
    emit({ type: 'message_start', role: 'assistant' });
    let isDiscarded = false;
    for (let part = 0; part <= chance(2) && !isDiscarded; part++) {
      const kind = chance(3) === 0 ? 'thinking' : 'text';
      emit({ type: `${kind}_start`, part });
      let text = '';
      for (let deltas = chance(40); deltas > 0; deltas--) {
        const delta = `${chance(1_000)} `.repeat(1 + chance(3));
        text += delta;
        emit({ type: `${kind}_delta`, part, delta });
        if (chance(20) === 0) emit({ type: 'warning', message: 'something else happens' });
        if (chance(3) === 0) await turn();
        isDiscarded = chance(100) === 0;
        if (isDiscarded) break;
      }
      if (isDiscarded) break;
      emit({ type: `${kind}_end`, part, text });
      if (chance(2) === 0) await turn();
    }
    const message = { role: 'assistant', content: [], stop: 'stop', usage: NO_USAGE } as const;
    if (isDiscarded) emit({ type: 'attempt_discarded', reason: 'a test', usage: NO_USAGE });
    else emit({ type: 'message_end', message });
    for (let turns = chance(20); turns > 0; turns--) await turn();
    // A model's answers arrive more slowly than a reader reads.
    while (reader.lag > LAG_MAX && reader.connections < connectionsMin) await turn();
  }
}

class CutReader {
  connections = 0;
  told = 0;
  readonly #feed: Feed;
  readonly #chance: Chance;
  readonly #open = new Map<string, string>();
  readonly #wrong: { readonly heard: string; readonly text: string }[] = [];
  readonly #heard: Recorded[] = [];
  #blocks = 0;
  #last = 0;

  constructor(feed: Feed, chance: Chance) {
    this.#feed = feed;
    this.#chance = chance;
  }

  /** The number of events that the reader is behind. */
  get lag(): number {
    return this.told - this.#last;
  }

  result(): Omit<Reconnected, 'kept'> {
    return { connections: this.connections, blocks: this.#blocks, wrong: this.#wrong, heard: this.#heard };
  }

  async readAll(): Promise<void> {
    for (let isOver = false; !isOver;) {
      this.connections += 1;
      let left = this.#chance(60);
      for await (const told of eventsOf(new Response(this.#feed.replay(this.#last).body))) {
        this.#take(told);
        isOver = told.event === 'run_end';
        if (isOver || (left -= 1) < 0) break;
      }
      for (let turns = this.#chance(12); turns > 0; turns--) await turn();
    }
  }

  #take({ id, data }: Told): void {
    this.#last = id ?? this.#last;
    if (EVENTS[data.type].delivery !== 'lossy') this.#heard.push(data);
    if (data.type === 'attempt_discarded') this.#discard(data.worker);
    if (!('part' in data)) return;
    const key = `${data.worker} ${data.part}`;
    if (data.type === 'text_start' || data.type === 'thinking_start') this.#open.set(key, '');
    // A delta of no open block belongs to an answer that was discarded, or was never told to begin.
    if ('delta' in data && !this.#open.has(key)) this.#wrong.push({ heard: data.delta, text: '' });
    if ('delta' in data) this.#open.set(key, (this.#open.get(key) ?? '') + data.delta);
    if (data.type !== 'text_end' && data.type !== 'thinking_end') return;
    this.#blocks += 1;
    const heard = this.#open.get(key) ?? '';
    this.#open.delete(key);
    if (heard !== data.text) this.#wrong.push({ heard, text: data.text });
  }

  #discard(worker: number | undefined): void {
    for (const key of this.#open.keys()) if (key.startsWith(`${worker} `)) this.#open.delete(key);
  }
}
