// Text from a model, a tool or a file name, made safe and short enough for a terminal.
//
// Such text may hold control sequences: to colour, to move the cursor over what was said before, to
// set the clipboard, to answer in the user's name. None reaches the terminal. Whole sequences go, not
// only the ESC in front, so no "[31m" is left behind; of the control characters newline and tab stay; and
// so do all letters, but not the marks that make text run backwards.

import { createRequire } from 'node:module';
import type { Io, Output } from '../../io.ts';

// A sequence longer than this is not a sequence but text behind a stray ESC.
const SEQUENCE_CHARS_MAX = 4_096;

const BIDI = /[\u200E\u200F\u202A-\u202E\u2066-\u2069]/;

type State = 'text' | 'escape' | 'escape-intermediate' | 'control' | 'string' | 'string-escape';

/** Cleans text that arrives in pieces: a sequence may be cut anywhere. */
export class Cleaner {
  #state: State = 'text';
  #chars = 0;

  push(text: string): string {
    let kept = '';
    for (const char of text) {
      this.#chars = this.#state === 'text' ? 0 : this.#chars + 1;
      if (this.#chars > SEQUENCE_CHARS_MAX) this.#state = 'text';
      if (this.#state === 'text') kept += this.#read(char);
      else kept += this.#skip(char);
    }
    return kept;
  }

  #read(char: string): string {
    const code = char.codePointAt(0) ?? 0;
    if (code === 0x1b) this.#state = 'escape';
    else if (code === 0x9b) this.#state = 'control';
    else if (STRING_STARTS_C1.has(code)) this.#state = 'string';
    return isControlCharacter(code) || BIDI.test(char) ? '' : char;
  }

  /** Inside a sequence nothing is kept, but for a newline, which ends a broken one. */
  #skip(char: string): string {
    const code = char.codePointAt(0) ?? 0;
    if (code === 0x1b) {
      this.#state = this.#state === 'string' ? 'string-escape' : 'escape';
      return '';
    }
    if (code === 0x0a || code === 0x18 || code === 0x1a) {
      this.#state = 'text';
      return code === 0x0a ? '\n' : '';
    }
    this.#state = terminalStateAfter(this.#state, char, code);
    return '';
  }
}

function terminalStateAfter(state: State, char: string, code: number): State {
  switch (state) {
    case 'text':
      return 'text';
    case 'escape':
      if (char === '[') return 'control';
      if (STRING_STARTS.has(char)) return 'string';
      return code >= 0x20 && code <= 0x2f ? 'escape-intermediate' : 'text';
    case 'escape-intermediate':
      return code >= 0x20 && code <= 0x2f ? 'escape-intermediate' : 'text';
    case 'control':
      return code >= 0x20 && code <= 0x3f ? 'control' : 'text';
    case 'string':
      return code === 0x07 || code === 0x9c ? 'text' : 'string';
    case 'string-escape':
      return char === '\\' ? 'text' : 'string';
  }
}

// DCS, SOS, OSC, PM, APC: what follows is a string, up to its terminator.
const STRING_STARTS = new Set(['P', 'X', ']', '^', '_']);
const STRING_STARTS_C1 = new Set([0x90, 0x98, 0x9d, 0x9e, 0x9f]);

function isControlCharacter(code: number): boolean {
  return (code < 0x20 && code !== 0x0a && code !== 0x09) || (code >= 0x7f && code <= 0x9f);
}

export function cleanText(text: string): string {
  return new Cleaner().push(text);
}

/** The whole text, with everything that cannot be seen written out: for what a person is asked to agree to. */
export function writeOutControls(text: string): string {
  return text.replace(/[^\P{Other}\n]|[\p{Zl}\p{Zp}]/gu, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}

/** One clean line, cut with an ellipsis to what fits into `columns`. */
export function textOnOneLine(text: string, columns: number): string {
  return cutText(cleanText(text).replace(/\s+/g, ' ').trim(), columns);
}

/**
 * One line for a column: terminals disagree on how wide joined emoji and piles of accents are; taken apart they agree.
 */
export function textCell(text: string, columns: number): string {
  const plain = text.normalize('NFC').replace(/[\p{Format}\p{Variation_Selector}\u20E3]/gu, '');
  return textOnOneLine(plain.replace(/(\p{Mn}{2})\p{Mn}+/gu, '$1'), columns);
}

export function cutText(line: string, columns: number): string {
  if (PLAIN.test(line)) return line.length <= columns ? line : `${line.slice(0, columns - 1)}…`;
  // Made only when it is needed: the first one costs more than the rest of a start.
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  let width = 0;
  let fits = '';
  for (const { segment } of graphemes.segment(line)) {
    const wide = widthOfText(segment);
    if (width + wide > columns - 1) return line === fits + segment && width + wide <= columns ? line : `${fits}…`;
    fits += segment;
    width += wide;
  }
  return line;
}

const PLAIN = /^[ -~]*$/;
let graphemes: Intl.Segmenter | undefined;
let stringWidth: typeof import('string-width').default | undefined;

/** How many columns text takes on a terminal. */
export function widthOfText(text: string): number {
  if (PLAIN.test(text)) return text.length;
  // Loaded with the first text that is not ASCII: loading takes longer than the rest of a start.
  stringWidth ??= (createRequire(import.meta.url)('string-width') as typeof import('string-width')).default;
  return stringWidth(text);
}

/**
 * Text that CI runners take for text. GitHub's obeys `::command::` at the beginning of a line, behind white space and
 * characters that can't be seen too, and `##[command]` anywhere; Azure's `##vso[command]`, TeamCity's `##teamcity[…]`.
 */
export function inertText(text: string): string {
  return text
    .replace(/^([^!-9;-~\n]*:)(?=[^!-~\n]*:)/gm, '$1 ')
    .replace(/#[^ -~\n]*#(?=[^ -~\n]*\w{0,16}[^ -~\n]*\[)/g, '# #');
}

/** The same text, made inert where a CI runner reads the log. */
export function textForLog(text: string, env: Io['env']): string {
  return isTerminalRead(env) ? inertText(text) : text;
}

/** The same for text that arrives in pieces: a command may be cut anywhere, so a runner gets whole lines. */
export class LogLines {
  readonly #isRead: boolean;
  #line = '';

  constructor(env: Io['env']) {
    this.#isRead = isTerminalRead(env);
  }

  push(text: string): string {
    if (!this.#isRead) return text;
    const all = this.#line + text;
    const end = all.lastIndexOf('\n') + 1;
    this.#line = all.slice(end);
    return inertText(all.slice(0, end));
  }

  flush(): string {
    const rest = inertText(this.#line);
    this.#line = '';
    return rest;
  }
}

const RUNNERS = ['CI', 'GITHUB_ACTIONS', 'TF_BUILD', 'TEAMCITY_VERSION'];

/** Whether a CI runner reads the output. */
export function isTerminalRead(env: Io['env']): boolean {
  return RUNNERS.some((name) => (env[name] ?? '') !== '');
}

const COLUMNS_MIN = 20;
const COLUMNS_DEFAULT = 80;

/** The width of a line. Without a terminal, lines are never cut. */
export function terminalColumns({ isTTY, columns }: Output): number {
  return isTTY === true ? Math.max(columns ?? COLUMNS_DEFAULT, COLUMNS_MIN) : Number.POSITIVE_INFINITY;
}
