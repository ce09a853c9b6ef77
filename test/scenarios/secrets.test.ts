// Secrets of every shape pass through a whole session: prompt, answer, thinking, arguments, tool output.
// None is in the journal or in an event; the model sees them all.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import { EventRedaction } from '@drover/core/redaction/event-redaction';
import { Redactor } from '@drover/core/redaction/redactor';
import { expect } from 'vitest';
import { agentOn, temporaryFolder } from '../support/agent.ts';
import { PLANTED } from '../support/data/planted-secrets.ts';
import { proves } from '../support/proves.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
const encodings = {
  whole: (text: string) => text,
  'JSON-escaped': (text: string) => JSON.stringify({ text }),
  base64: (text: string) => Buffer.from(text).toString('base64'),
};

proves(
  'secrets.hidden',
  'sixty secret shapes in any encoding are neither stored nor shown',
  async () => {
    expect(PLANTED.length).toBeGreaterThanOrEqual(60);
    for (const [name, encode] of Object.entries(encodings)) {
      const home = await temporaryFolder();
      const { store, close } = await openSessionJournal(home, 's', HOOKS);
      const redaction = new EventRedaction(new Redactor([]));
      // A key file has lines; in base64 each secret is a line of its own.
      const text = PLANTED.map((planted) => encode(planted.text)).join('\n\n');
      const { run, server } = await agentOn(
        {
          chunkChars: 7,
          answers: [
            {
              thinking: text,
              text,
              calls: [
                { name: 'read', args: { path: 'secrets.txt' } },
                { name: 'write', args: { path: 'copy.txt', content: text } },
              ],
            },
            { text: 'ok' },
          ],
        },
        {
          id: 's',
          store,
          context: { cwd: home, env: {}, outputFolder: join(home, 'out') },
          pass: (event, place) => redaction.pass(event, place),
        },
      );
      await writeFile(join(home, 'secrets.txt'), text);
      const { events } = await run(text);
      await close();
      const journal = await readFile(journalPath(home, 's'), 'utf8');
      const shown = JSON.stringify(events);
      const deltas = events.map((event) => ('delta' in event ? event.delta : '\n')).join('');
      const seen = PLANTED.filter(({ secret }) =>
        [journal, shown, deltas].some((place) => encodedForms(secret, encode).some((form) => place.includes(form))),
      );
      expect(seen.map(({ id }) => `${name}: ${id}`)).toEqual([]);
      const asked = JSON.stringify(server.requests.at(-1)?.body);
      expect(PLANTED.filter((planted) => !asked.includes(JSON.stringify(encode(planted.text)).slice(1, -1)))).toEqual(
        [],
      );
      expect(await readFile(join(home, 'copy.txt'), 'utf8')).toBe(text);
    }
  },
  60_000,
);

/** The secret as it appears in a JSON Lines file. */
function encodedForms(secret: string, encode: (text: string) => string): readonly string[] {
  const core = encode(secret).replaceAll('=', '');
  // In base64 the first and last characters depend on the text around the secret.
  const inner = encode === encodings.base64 ? core.slice(8, -8) : secret;
  return [inner, JSON.stringify(inner).slice(1, -1)].filter((form) => form.length > 5);
}
