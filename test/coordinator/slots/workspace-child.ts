// A run's use of workspaces in a separate process that tests kill: two tasks, one based on the other.
// Arguments as JSON: drover's home, the repository, the run, and the environment for git.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRepository } from '@drover/coordinator/git/repository';
import { Slots } from '@drover/coordinator/slots/slots';

const { home, top, run, env, waits } = JSON.parse(process.argv[2] ?? '') as {
  home: string;
  top: string;
  run: string;
  env: Record<string, string>;
  waits: boolean;
};
const { signal } = new AbortController();

const repository = await openRepository(top, env);
const slots = await Slots.open({ home, repository, run, env });
slots.prepare(1);
const first = await slots.take({ worker: 1, task: 'first', attempt: 1, base: repository.head, signal });
writeFileSync(join(first.path, 'src/a.ts'), 'by the first');
writeFileSync(join(first.path, 'x.log'), 'ignored');
if (waits) {
  process.stdout.write('ready\n');
  await new Promise((resolve) => setTimeout(resolve, 60_000));
}
const order = { message: 'first', when: '2026-03-04T05:06:07Z', branch: `drover/${run}/first` };
const made = await first.commit(order);
await first.release();
const second = await slots.take({ worker: 1, task: 'second', attempt: 1, base: made?.commit ?? '', signal });
writeFileSync(join(second.path, 'src/b.ts'), 'by the second');
await second.commit({ ...order, branch: `drover/${run}/second` });
await second.release();
await slots.close();
process.stdout.write('done\n');
