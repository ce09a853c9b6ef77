// drover in a process in which, at the nth record of a journal, a thread is told to fail. The record waits for that.

import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Journal } from '@drover/core/journal/file/journal';
import type { JsonObject } from '@drover/protocol/json';
import { PassThrough, Readable } from 'node:stream';
import { main } from '../../../bin/drover.ts';

const WAIT_MS_MAX = 300;
const LOOK_MS = 2;

const [at = '0', fault = '', ...argv] = process.argv.slice(2);
const file = process.env['DROVER_TEST_FAULT'] ?? '';
let left = Number(at);

const append = Reflect.get(Journal.prototype, 'append') as Journal['append'];
Journal.prototype.append = async function (this: Journal, records: readonly JsonObject[], durable: boolean) {
  const isHere = left > 0 && left <= records.length;
  left -= records.length;
  if (isHere) await askForFault();
  return append.call(this, records, durable);
};

/** Where no thread has the guilty task, nothing happens. */
async function askForFault(): Promise<void> {
  writeFileSync(file, fault);
  for (let waited = 0; waited < WAIT_MS_MAX && existsSync(file); waited += LOOK_MS) await sleep(LOOK_MS);
  rmSync(file, { force: true });
}

const ended = main(argv, {
  stdin: Readable.from([]),
  stdout: new PassThrough().resume(),
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  node: process.execPath,
  onStop: () => () => undefined,
});
void ended.then((code) => process.exit(code));
