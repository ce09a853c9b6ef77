// What the demo's model says. Only its words are scripted: the agent, its tools and the tests are real.

import type { Answer, Script } from '@drover/rehearsal/script';

export const PROMPT = 'A test of this library fails. Find out why, mend the library, and show that the tests pass.';

const READING_SPEED = 45; // tokens a second: quick enough to watch, slow enough to read
const THINKING_MS = 500;

const ANSWERS: readonly Answer[] = [
  {
    text: 'I start with the tests, to see what fails.',
    calls: [{ name: 'shell', args: { command: 'node --test' } }],
  },
  {
    text: 'Titles with several separators in a row fail. I read the code and what is expected of it.',
    calls: [
      { name: 'read', args: { path: 'src/slug.js' } },
      { name: 'read', args: { path: 'test/slug.test.js' } },
    ],
  },
  {
    text: 'Each character that is no letter and no digit becomes a dash of its own, so ", " becomes two. A run of them should become one: the pattern lacks a plus.',
    calls: [
      {
        name: 'edit',
        args: { path: 'src/slug.js', old: ".replace(/[^a-z0-9]/g, '-')", new: ".replace(/[^a-z0-9]+/g, '-')" },
      },
    ],
  },
  { text: 'Now the tests again.', calls: [{ name: 'shell', args: { command: 'node --test' } }] },
  {
    text: 'Done. In `src/slug.js` a run of separators now becomes a single dash. All three tests pass; nothing else was changed.',
  },
];

/** At a pace to watch on a terminal, at once elsewhere. */
export function demoScript(isWatched: boolean): Script {
  const pace = isWatched ? { tokensPerSecond: READING_SPEED, delayMs: THINKING_MS } : {};
  return { answers: ANSWERS.map((answer) => ({ ...answer, ...pace })) };
}
