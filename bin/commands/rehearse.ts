// drover rehearse <script>: serve a scripted model to other programs, on this machine only.

import { resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { defineCommand, valueOption } from '../start/command.ts';
import { exitCodeOfStop } from '../start/exit-code.ts';
import { print } from '../io.ts';
import { parseCount } from '../start/quantities.ts';
import { openRehearsal } from '../model/rehearsal.ts';
import { watchForStopSignal } from '../stop.ts';

export const rehearse = defineCommand({
  word: { name: 'script', about: 'YAML file with the answers of the model', required: true },
  options: {
    port: valueOption('Options:', 'N', 'Port to listen on (default: a free one)', (text) =>
      parseCount(text, 0, 65_535),
    ),
  },
  examples: [['drover rehearse script.yaml --port 4010', 'Then point any client at http://127.0.0.1:4010']],
  async run({ word, port }, io) {
    if (word === undefined) throw new UsageError('drover rehearse needs <script>; see drover rehearse --help');
    const stop = watchForStopSignal(io, () => undefined);
    const rehearsal = await openRehearsal(resolve(io.cwd, word), port);
    try {
      await print(
        io.stdout,
        `rehearsing ${word}; end with Ctrl-C\n` +
          `  ANTHROPIC_BASE_URL=${rehearsal.baseUrlFor('anthropic')}\n` +
          `  OPENAI_BASE_URL=${rehearsal.baseUrlFor('openai')}\n`,
      );
      await new Promise<void>((resolve) => {
        if (stop.signal.aborted) resolve();
        else stop.signal.addEventListener('abort', () => resolve(), { once: true });
      });
      return exitCodeOfStop(stop.cause());
    } finally {
      stop.close();
      await rehearsal.close();
    }
  },
});
