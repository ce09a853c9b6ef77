// drover in a process that kills itself at the nth record of a journal, or the first of a type, before or after the
// record is durable.

import { Journal } from '@drover/core/journal/file/journal';
import type { JsonObject } from '@drover/protocol/json';
import { main } from '../../../bin/drover.ts';
import { PassThrough, Readable } from 'node:stream';

const [at = '0', when = 'after', ...argv] = process.argv.slice(2);
let left = Number(at); // NaN if the kill point is a type

const append = Reflect.get(Journal.prototype, 'append') as Journal['append'];
const die = (): never => {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('unreachable');
};
Journal.prototype.append = async function (this: Journal, records: readonly JsonObject[], durable: boolean) {
  // The first call of a tool, if one is named.
  const tool = process.env['DROVER_CRASH_TOOL'];
  const ofType = records.findIndex(({ type, name }) => type === at && (tool === undefined || name === tool)) + 1;
  const here = ofType > 0 ? ofType : left > 0 && left <= records.length ? left : 0;
  left -= records.length;
  if (here === 0) return append.call(this, records, durable);
  // A crash can tear records that are written together: some of them are on disk, the rest are not.
  const kept = when === 'before' ? here - 1 : here;
  if (kept > 0) await append.call(this, records.slice(0, kept), true);
  return die();
};

const silent = new PassThrough().resume();
const ended = main(argv, {
  stdin: Readable.from([]),
  stdout: silent,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  node: process.execPath,
  onStop: () => () => undefined,
});
// Threads may still be closing.
void ended.then((code) => process.exit(code));
