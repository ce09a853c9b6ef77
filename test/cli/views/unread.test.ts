// Stalled readers are not waited for; slow readers are.

import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { whenOutputUnread } from '../../../bin/io.ts';

const UNREAD_MS = 800;

/** Writes more than its buffer holds, repeatedly. */
function full(): PassThrough {
  const output = new PassThrough({ highWaterMark: 1 });
  const write = (): void => void output.write('more than there is room for');
  output.on('drain', write);
  write();
  return output;
}

function readNowAndThen(output: PassThrough): PassThrough {
  const reading = setInterval(() => output.read(), UNREAD_MS / 20);
  onTestFinished(() => clearInterval(reading));
  return output;
}

async function isGivenUp(output: PassThrough): Promise<boolean> {
  let isOver = false;
  whenOutputUnread(output, UNREAD_MS, () => (isOver = true));
  await delay(2 * UNREAD_MS);
  return isOver;
}

test('stalled output is abandoned, but not slow or missing output', async () => {
  const outputs = [full(), readNowAndThen(full()), new PassThrough()];
  expect(await Promise.all(outputs.map(isGivenUp))).toEqual([true, false, false]);
});
