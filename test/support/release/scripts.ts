// Rehearsal scripts for a packed drover: one agent that searches, and a worker that writes.

/** The model of an `exec`: a search by ripgrep, and a shell command. */
export const SEARCHES = `
answers:
  - calls: [{ name: grep, args: { pattern: needle } }]
  - calls: [{ name: glob, args: { pattern: '*.txt' } }]
  - text: 'Gefunden: {{ lastResult }} ✓'
`;

/** The model of a run with a plan file: a worker that runs a command and writes a file. */
export const WRITES = `
order: conversation
answers:
  - calls: [{ name: shell, args: { command: 'echo hello' } }]
  - calls: [{ name: write, args: { path: one.txt, content: 'text' } }]
  - text: Written.
`;
export const PLAN = 'tasks: [{ id: one, title: One, prompt: Write one.txt }]';

/** The model of a run that plans two tasks, each of which adds a module that uses an installed package. */
export const TWO_TASKS = `
answers:
  - calls:
      - name: submit_plan
        args: { tasks: [{ id: add, title: Add, prompt: Write add.js. }, { id: sub, title: Subtract, prompt: Write sub.js. }] }
  - text: Both are there.
agents:
  add:
    assigned: 'Your task is add:'
    answers:
      - calls: [{ name: write, args: { path: add.js, content: 'require("mine"); module.exports = (a, b) => a + b;' } }]
      - calls: [{ name: shell, args: { command: npm test } }]
      - calls: [{ name: submit_result, args: { summary: Added. } }]
  sub:
    assigned: 'Your task is sub:'
    answers:
      - calls: [{ name: write, args: { path: sub.js, content: 'require("mine"); module.exports = (a, b) => a - b;' } }]
      - calls: [{ name: shell, args: { command: npm test } }]
      - calls: [{ name: submit_result, args: { summary: Subtracted. } }]
`;
