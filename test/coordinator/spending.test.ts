// What a run has spent by its journal, also of requests that were under way when it was killed, once or more often.

import { runPastOf } from '@drover/coordinator/past';
import type { Place } from '@drover/core/events';
import type { JsonObject } from '@drover/core/json';
import type { Usage } from '@drover/core/model/protocol';
import { expect, test } from 'vitest';
import { sampleSettings, Teller } from '../support/sample-run.ts';

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

  settle(place: Place, usage: number, own: number): this {
    this.tell({ type: 'budget', usage: used(usage), spent: usage, reserved: 0 }, place);
    this.tell({ type: 'usage', usage: used(own), total: used(own) }, place);
    return this;
  }

  get spent() {
    const past = runPastOf(this.events as unknown as readonly JsonObject[]);
    const tasks = [...(past?.spent.tasks ?? [])].map(([task, { input }]) => [task, input]);
    return [past?.spent.total.input, Object.fromEntries(tasks), past?.lostRequests];
  }
}

test('what was settled counts as what it came to, what was not counts in full', () => {
  const story = new Story().start().send({ worker: 0 }, 0, 100).settle({ worker: 0 }, 7, 7);
  expect(story.spent).toEqual([7, {}, 0]);
  story.send(ONE, 7, 100).send(TWO, 7, 200);
  expect(story.spent).toEqual([307, { one: 100, two: 200 }, 2]);
  story.settle(ONE, 12, 5);
  expect(story.spent).toEqual([212, { one: 5, two: 200 }, 1]);
});

test('what was lost once is lost once, also where the run is killed again before it has asked for anything', () => {
  const story = new Story().start().send(ONE, 0, 100).start(true);
  expect(story.spent).toEqual([100, { one: 100 }, 0]);
  story.start(true).send(ONE, 100, 50);
  expect(story.spent).toEqual([150, { one: 150 }, 1]);
  story.settle(ONE, 103, 3);
  expect(story.spent).toEqual([103, { one: 103 }, 0]);
});
