// Spending of a run by its journal, including requests in flight at one or more kills.

import { runStateOfRecords } from '@drover/coordinator/run/runs';
import { type RunHistory, readRunHistory } from '@drover/coordinator/run/history';
import type { RunState } from '@drover/coordinator/view/state';
import type { Event, Place } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import type { Usage } from '@drover/protocol/messages';
import { expect, test } from 'vitest';
import { sampleSettings, Teller } from '../../support/run/sample-run.ts';

const used = (input: number): Usage => ({ input, output: 0, cacheRead: 0, cacheWrite: 0 });
const ONE = { worker: 1, task: 'one', attempt: 1 };
const TWO = { worker: 2, task: 'two', attempt: 1 };

class Story extends Teller {
  start(resumed = false): this {
    this.tell({ type: 'run_start', resumed, ...sampleSettings });
    return this;
  }

  send(place: Place, usage: number, most: number): this {
    this.tell({ type: 'budget', usage: used(usage), spent: usage, reserved: most, most: used(most) }, place);
    return this;
  }

  /** Another model is used from here on. */
  resume(model: string): this {
    this.tell({ type: 'run_start', resumed: true, ...sampleSettings, model });
    return this;
  }

  settle(place: Place, usage: number, own: number): this {
    this.tell({ type: 'budget', usage: used(usage), spent: usage, reserved: 0 }, place);
    this.tell({ type: 'usage', usage: used(own), total: used(own) }, place);
    return this;
  }

  get cost(): number | undefined {
    return this.#past?.spent.total.cost;
  }

  costOf(task: string): number | undefined {
    return this.#past?.spent.tasks.get(task)?.cost;
  }

  get state(): RunState {
    return runStateOfRecords(this.events as unknown as readonly JsonObject[]);
  }

  get #past(): RunHistory | undefined {
    return readRunHistory(this.events as unknown as readonly JsonObject[]);
  }

  get spent() {
    const past = this.#past;
    const tasks = [...(past?.spent.tasks ?? [])].map(([task, { usage }]) => [task, usage.input]);
    return [past?.spent.total.usage.input, Object.fromEntries(tasks), past?.lostRequests];
  }
}

const OPUS = 'anthropic/claude-opus-4-1'; // $15 per million tokens of input
const HAIKU = 'anthropic/claude-haiku-4-5'; // $1
const MILLION = 1_000_000;

/** A total as older versions recorded it: all of it at the last model's price. */
const older = (usage: number, perMillion: number): Event => ({
  type: 'budget',
  usage: used(usage),
  spent: usage,
  reserved: 0,
  cost: (usage / MILLION) * perMillion,
});

test('a lost request counts in the dollars of the model it was sent to', () => {
  const story = new Story().resume(OPUS);
  const most = { most: used(MILLION), mostCost: 4.85 };
  story.tell({ type: 'budget', usage: used(0), spent: 0, reserved: 4.85, cap: { usd: 5 }, cost: 0, ...most }, ONE);
  story.resume(HAIKU);
  expect([story.cost, story.costOf('one')]).toEqual([4.85, 4.85]);
});

test('totals of older journals use the price of each request’s model', () => {
  const story = new Story().resume(OPUS);
  story.tell(older(MILLION, 15), ONE);
  story.resume(HAIKU);
  story.tell(older(2 * MILLION, 1), ONE);
  story.tell(older(3 * MILLION, 1), ONE);
  expect([story.cost, story.state.cost]).toEqual([17, 17]);
});

test('a journal without dollars is priced by the catalog, for the models it knows', () => {
  const story = new Story().resume(OPUS);
  story.settle(ONE, MILLION, MILLION).resume('local/unheard-of');
  story.settle(TWO, 2 * MILLION, MILLION).resume(HAIKU);
  story.settle(TWO, 3 * MILLION, 2 * MILLION);
  expect([story.cost, story.costOf('one'), story.state.cost]).toEqual([16, 15, 16]);
});

test('charged requests count their cost, and open ones count in full', () => {
  const story = new Story().start().send({ worker: 0 }, 0, 100).settle({ worker: 0 }, 7, 7);
  expect(story.spent).toEqual([7, {}, 0]);
  story.send(ONE, 7, 100).send(TWO, 7, 200);
  expect(story.spent).toEqual([307, { one: 100, two: 200 }, 2]);
  story.settle(ONE, 12, 5);
  expect(story.spent).toEqual([212, { one: 5, two: 200 }, 1]);
});

test('a loss counts once, even if the run is killed again before its next request', () => {
  const story = new Story().start().send(ONE, 0, 100).start(true);
  expect(story.spent).toEqual([100, { one: 100 }, 0]);
  story.start(true).send(ONE, 100, 50);
  expect(story.spent).toEqual([150, { one: 150 }, 1]);
  story.settle(ONE, 103, 3);
  expect(story.spent).toEqual([103, { one: 103 }, 0]);
});
