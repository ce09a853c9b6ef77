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
