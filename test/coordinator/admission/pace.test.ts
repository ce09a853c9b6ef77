// The pace of a lane and the rest of its limits. Time is a number here, so no test waits.

import { Allowance } from '@drover/coordinator/admission/allowance';
import { isRateRefusal, Pace } from '@drover/coordinator/admission/pace';
import type { Rate } from '@drover/coordinator/admission/rate-headers';
import { describe, expect, test } from 'vitest';

function paceOf(parallelMax: number): Pace {
  const pace = new Pace({ random: () => 0.5 });
  pace.widen(parallelMax);
  return pace;
}

/** A pace that has seen the answer to a request sent at 0. */
function provenPace(parallelMax: number): Pace {
  const pace = paceOf(parallelMax);
  pace.sent(0);
  pace.answered(0);
  return pace;
}

describe('pacing', () => {
  test('the first request goes alone until its answer begins', () => {
    const pace = paceOf(8);
    expect(pace.hold(0, 0)).toBeUndefined();
    pace.sent(0);
    expect(pace.hold(1, 1_000)).toEqual({ why: 'alone', waitMs: 4_000 });
    pace.begun(0);
    expect(pace.hold(1, 1_000)).toBeUndefined();
    expect(pace.hold(8, 1_000)).toEqual({ why: 'parallel' });
  });

  test('without an answer within five seconds the others follow one by one', () => {
    const pace = paceOf(8);
    pace.sent(0);
    expect(pace.hold(1, 5_000)).toBeUndefined();
    pace.sent(5_000);
    expect(pace.hold(2, 5_000)).toEqual({ why: 'gap', waitMs: 100 });
    expect(pace.hold(2, 5_100)).toBeUndefined();
  });

  test('after another kind of failure the next request goes alone', () => {
    const pace = paceOf(8);
    pace.sent(0);
    pace.failed(0);
    expect(pace.hold(0, 10)).toBeUndefined();
    pace.sent(10);
    expect(pace.hold(1, 20)).toMatchObject({ why: 'alone' });
  });

  test('a refusal pauses all for its time, then one goes alone and the others in gaps', () => {
    const pace = provenPace(8);
    pace.sent(100);
    pace.refused(3_000, 100, 200);
    expect([pace.hold(0, 200), pace.pausedMs(200)]).toEqual([{ why: 'paused', waitMs: 3_000 }, 3_000]);
    expect(pace.hold(0, 3_200)).toBeUndefined();
    pace.sent(3_200);
    expect(pace.hold(1, 3_300)).toMatchObject({ why: 'alone' });
    pace.begun(3_200);
    expect(pace.hold(1, 3_250)).toEqual({ why: 'gap', waitMs: 50 });
    pace.sent(3_300);
    expect(pace.hold(2, 3_300)).toEqual({ why: 'gap', waitMs: 100 });
  });

  test('an answer to a request sent before the refusal does not end the pause', () => {
    const pace = provenPace(8);
    pace.sent(100);
    pace.sent(101);
    pace.refused(1_000, 100, 200);
    pace.answered(101);
    pace.sent(1_200);
    expect(pace.hold(1, 1_201)).toMatchObject({ why: 'alone' });
  });

  test('a refusal halves the concurrency once for all requests sent before it', () => {
    const pace = provenPace(16);
    pace.refused(100, 10, 200);
    pace.refused(100, 11, 201);
    pace.refused(500, 12, 202);
    expect([pace.parallel, pace.pausedMs(202)]).toEqual([8, 500]);
    pace.refused(100, 300, 310);
    expect(pace.parallel).toBe(4);
  });

  test('concurrency never falls below one, and eight answers raise it by one', () => {
    const pace = provenPace(2);
    pace.refused(10, 1, 2);
    pace.refused(10, 3, 4);
    expect(pace.parallel).toBe(1);
    for (let at = 5; at < 12; at++) pace.answered(at);
    expect(pace.parallel).toBe(1);
    pace.answered(12);
    expect(pace.parallel).toBe(2);
    for (let at = 13; at < 40; at++) pace.answered(at);
    expect(pace.parallel).toBe(2);
  });

  test('without retry-after the wait doubles until the server answers', () => {
    const pace = provenPace(8);
    const waits = [10, 20_000, 40_000].map((now) => {
      pace.refused(undefined, now - 1, now);
      return pace.pausedMs(now);
    });
    expect(waits).toEqual([1_000, 2_000, 4_000]);
    pace.answered(50_000);
    pace.refused(undefined, 60_000, 60_001);
    expect(pace.pausedMs(60_001)).toBe(1_000);
  });

  test('a server that refuses again after its own retry time is waited for longer', () => {
    const pace = provenPace(8);
    pace.refused(20, 1, 2);
    pace.refused(20, 30, 31);
    expect(pace.pausedMs(31)).toBe(2_000);
  });

  test.each([
    [{ kind: 'provider.throttled', status: 429, message: '' }, true],
    [{ kind: 'provider.unavailable', status: 529, message: '' }, true],
    [{ kind: 'provider.unavailable', status: 503, message: '', retryAfterMs: 1 }, true],
    [{ kind: 'provider.unavailable', status: 503, message: '' }, false],
    [{ kind: 'provider.unavailable', status: 500, message: '', retryAfterMs: 1 }, false],
    [{ kind: 'provider.rejected', status: 400, message: '' }, false],
    [{ kind: 'aborted', by: 'user' }, false],
  ] as const)('%j slows all: %j', (failure, isOne) => {
    expect(isRateRefusal(failure)).toBe(isOne);
  });
});

describe('the remaining amount of a limit', () => {
  const rate = (remaining: number, more: Partial<Rate> = {}): Rate => ({
    name: 'requests',
    countsCacheReads: false,
    remaining,
    limit: 11,
    resetMs: 1_000,
    ...more,
  });
  const sighting = { unseen: 0, ageMs: 0 };

  test('requests since the report are subtracted and return as the bucket refills', () => {
    const left = new Allowance(rate(1), sighting, 0);
    expect(left.left).toBe(1);
    left.take(1);
    expect(left.readyInMs(1)).toBeCloseTo(1 / (0.009 * 0.95));
    left.pass(100_000, 0);
    expect(left.left).toBe(11);
  });

  test('a report raises the rest only by certain amounts, and always lowers it', () => {
    const left = new Allowance(rate(10), sighting, 0);
    for (let count = 0; count < 6; count++) left.take(1);
    left.report(rate(9), { unseen: 5, ageMs: 0 }, 0);
    expect(left.left).toBe(4);
    left.report(rate(8), { unseen: 1, ageMs: 0 }, 0);
    expect(left.left).toBe(7);
    left.report(rate(2), { unseen: 0, ageMs: 0 }, 0);
    expect(left.left).toBe(2);
  });

  test('a refill rate measured on a small gap does not replace a better one', () => {
    const left = new Allowance(rate(0), sighting, 0);
    left.report(rate(10, { resetMs: 1 }), sighting, 0);
    for (let count = 0; count < 10; count++) left.take(1);
    expect(left.readyInMs(1)).toBeCloseTo(1 / (0.01 * 0.95));
  });

  test('a reset time that may be old gives a slower refill', () => {
    const left = new Allowance(rate(0), { unseen: 0, ageMs: 1_000 }, 0);
    expect(left.readyInMs(1)).toBeCloseTo(1 / (0.005 * 0.95));
  });

  test('once the refill is not reliable, nothing is left before the reset', () => {
    const left = new Allowance(rate(1), sighting, 0);
    expect(left.take(1)).toBe(false);
    left.pass(500, 0);
    expect(left.take(1)).toBe(true);
    left.distrustRefill();
    left.pass(600, 0);
    expect([left.readyInMs(1), left.left]).toEqual([400, -1]);
    // The reset excludes requests that arrived before it, but no answer has confirmed their arrival yet.
    left.pass(1_000, 0);
    expect(left.left).toBe(9);
  });

  test('requests in flight may not have arrived, and a full limit gains nothing', () => {
    const left = new Allowance(rate(1), sighting, 0);
    left.pass(100_000, 0);
    for (let count = 0; count < 10; count++) left.take(1);
    left.pass(200_000, 10);
    expect([left.left, left.readyInMs(1), left.readyInMs(2)]).toEqual([1, 0, undefined]);
    // Once they have arrived, the bucket refills from that moment.
    left.pass(200_000, 0);
    expect(left.readyInMs(2)).toBeCloseTo(1 / (0.009 * 0.95));
  });

  test('a request larger than the whole limit waits for all of it', () => {
    const left = new Allowance(rate(0), sighting, 0);
    expect(left.readyInMs(500)).toBeCloseTo(11 / (0.01 * 0.95));
  });

  test('without a reset time the wait is unknown', () => {
    const left = new Allowance({ name: 'tokens', countsCacheReads: true, remaining: 3 }, sighting, 0);
    expect([left.readyInMs(3), left.readyInMs(4)]).toEqual([0, undefined]);
  });

  test('token limits rounded to thousands are lowered by half a thousand', () => {
    const left = new Allowance(rate(7_000, { limit: 30_000 }), sighting, 0);
    expect(left.left).toBe(6_500);
  });
});
