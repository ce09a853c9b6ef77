// The message of a commit that lands: the task's title and summary, which a model wrote, and our trailers.
//
// Readers of history trust `Drover-Run` and `Drover-Task`, and `git am` and `git apply` read a message as
// part of a patch. So what a model wrote can neither look like a trailer of ours nor begin a patch.

const SUBJECT_CHARS_MAX = 100;
const BODY_CHARS_MAX = 4_000;

export const TASK_TRAILER = 'Drover-Task';
const RUN_TRAILER = 'Drover-Run';

// Line starts with a meaning: drover's trailers, mailbox separators, and the start of a patch or hunk.
const MISLEADING = /^\s*(?:(?:drover-[\w-]*|co-authored-by)\s*:|---|\+\+\+|\*\*\*|@@|diff |index:|from )/i;
// Control characters, marks that reverse the writing direction, and invisible characters.
const UNSEEN = /[^\P{Cc}\n\t]|[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;
const LINE_ENDS = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;

/** The trailer for commits whose author is a user. */
const CO_AUTHOR = 'Co-authored-by: drover <drover@localhost>';

export type Described = {
  readonly run: string;
  readonly task: string;
  readonly title: string;
  readonly summary: string;
  readonly isCoAuthored?: boolean; // adds the trailer that names drover
};

export function commitMessage({ run, task, title, summary, isCoAuthored = false }: Described): string {
  const subject = oneLine(title, SUBJECT_CHARS_MAX) || oneLine(task, SUBJECT_CHARS_MAX);
  const body = harmless(bounded(clean(summary).trim(), BODY_CHARS_MAX));
  const trailers = [
    `${RUN_TRAILER}: ${oneLine(run, SUBJECT_CHARS_MAX)}`,
    `${TASK_TRAILER}: ${oneLine(task, SUBJECT_CHARS_MAX)}`,
    ...(isCoAuthored ? [CO_AUTHOR] : []),
  ].join('\n');
  // Git reads trailers from the last paragraph only.
  return `${[harmless(subject), body, trailers].filter((part) => part !== '').join('\n\n')}\n`;
}

function oneLine(text: string, charsMax: number): string {
  return bounded(clean(text).replace(/\s+/g, ' ').trim(), charsMax);
}

function clean(text: string): string {
  return text.toWellFormed().replace(LINE_ENDS, '\n').replace(UNSEEN, '');
}

function harmless(text: string): string {
  return text
    .split('\n')
    .map((line) => (MISLEADING.test(line) ? `> ${line.trimStart()}` : line.trimEnd()))
    .join('\n');
}

function bounded(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}
