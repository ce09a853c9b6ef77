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

export function mergeCommitMessage({ run, task, title, summary, isCoAuthored = false }: Described): string {
  const subject = messageOnOneLine(title, SUBJECT_CHARS_MAX) || messageOnOneLine(task, SUBJECT_CHARS_MAX);
  const body = harmlessMergeMessage(boundMergeMessage(cleanMergeMessage(summary).trim(), BODY_CHARS_MAX));
  const trailers = [
    `${RUN_TRAILER}: ${messageOnOneLine(run, SUBJECT_CHARS_MAX)}`,
    `${TASK_TRAILER}: ${messageOnOneLine(task, SUBJECT_CHARS_MAX)}`,
    ...(isCoAuthored ? [CO_AUTHOR] : []),
  ].join('\n');
  // Git reads trailers from the last paragraph only.
  return `${[harmlessMergeMessage(subject), body, trailers].filter((part) => part !== '').join('\n\n')}\n`;
}

function messageOnOneLine(text: string, charsMax: number): string {
  return boundMergeMessage(cleanMergeMessage(text).replace(/\s+/g, ' ').trim(), charsMax);
}

function cleanMergeMessage(text: string): string {
  return text.toWellFormed().replace(LINE_ENDS, '\n').replace(UNSEEN, '');
}

function harmlessMergeMessage(text: string): string {
  return text
    .split('\n')
    .map((line) => (MISLEADING.test(line) ? `> ${line.trimStart()}` : line.trimEnd()))
    .join('\n');
}

function boundMergeMessage(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}
