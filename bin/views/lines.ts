// lines: a session for a person to read, as it happens: what the agent says, and a line for what it does.
//
// The user's message is shown only where it is read later. The view only appends, so it reads the same on a
// terminal, in a pipe and in a CI log; there it is plain, and no line is cut. Text of a model, a tool or a
// file goes through terminal-text.ts.

import { DeniedCalls } from '@drover/core/permission/denied-calls';
import type { Shown } from '@drover/core/bus';
import { fallbackEventWords, retryWords } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { isModelAnswerCutOff } from '@drover/core/model/partial-answer';
import type { UserMessage } from '@drover/protocol/messages';
import { type Io, type Output, print } from '../io.ts';
import { countText, dollarsText, durationText, tokensText } from './text/figures.ts';
import { callDiffLines, callResultLine } from './text/call-result.ts';
import { type Style, textStyle } from './text/style.ts';
import { cleanText, Cleaner, terminalColumns, cutText, LogLines, textOnOneLine } from './text/terminal-text.ts';
import type { View } from './view.ts';
import { WordWrap, wrapText } from './text/word-wrap.ts';

const ASKED_LINES_MAX = 20;
const CUT_OFF = 'the answer above was cut off; it is kept as far as it came';

/** Lays out what the agent says, as it streams. */
export type Speech = { readonly push: (text: string) => string; readonly flush: () => string };

export function linesView(output: Output, env: Io['env'], asked: 'asked shown' | 'asked known'): View {
  return openLinesView(output, env, { asked, speech: () => new WordWrap(() => terminalColumns(output)) });
}

export function openLinesView(output: Output, env: Io['env'], options: LinesOptions): View {
  const lines = new Lines(output, textStyle(output, env), options);
  const log = new LogLines(env);
  return {
    show: (event) => print(output, log.push(lines.of(event))),
    say: (text) => print(output, log.push(lines.words(text))),
    close: () => print(output, log.push(lines.rest()) + log.flush()),
  };
}

export type LinesOptions = { readonly asked: 'asked shown' | 'asked known'; readonly speech: () => Speech };

type Of<Type extends Shown['type']> = Extract<Shown, { readonly type: Type }>;
type Mark = keyof typeof MARKS;

const MARKS = {
  call: ['cyan', '▸'],
  good: ['green', '✓'],
  bad: ['red', '✗'],
  refusal: ['red', '✗'],
  discard: ['yellow', '⨯'],
  again: ['yellow', '↻'],
  question: ['yellow', '?'],
  warning: ['yellow', '!'],
  aside: ['dim', '·'],
} as const;

const WHOLE: ReadonlySet<Mark> = new Set(['refusal', 'discard', 'again', 'warning']);

const unshownInLines = (): string => '';

/** A fold from events to text. */
class Lines {
  readonly #output: Output;
  readonly #style: Style;
  readonly #options: LinesOptions;
  #block: 'nothing' | 'text' | 'other text' | 'notes' | 'asked' | 'end' = 'nothing';
  #isLineOpen = false;
  /** The text of the current part as it came, to see what its end has to add. */
  #spoken = '';
  #cleaner = new Cleaner();
  #wrap: Speech;
  #isSpeaking = false; // this part has begun
  #hasSpoken = false; // in this attempt at an answer
  #startedAt: number | undefined;
  #turn: number | undefined;
  readonly #calls = new Map<string, number>(); // callId -> when it was started
  readonly #refused = new Set<string>();
  readonly #denied = new DeniedCalls();
  /** The call whose start was printed as the last line. */
  #openCall: string | undefined;
  #thinkingAt: number | undefined;
  #discardReason: string | undefined;

  /** The text for each type of event; empty if neighbouring events tell it, or if a reader does not need it. */
  readonly #told: { readonly [Type in Shown['type']]: (event: Of<Type>) => string } = {
    session_start: (event) => this.#start(event),
    session_end: (event) => this.#end(event),
    message_start: (event) => {
      this.#hasSpoken = false;
      // A message to an agent at work begins no turn. After a crash, the time between two turns does not count.
      const isSameTurn = event.turn !== undefined && event.turn === this.#turn;
      if (event.role === 'user' && !isSameTurn) this.#startedAt = eventTimeMs(event);
      this.#turn = event.turn;
      return '';
    },
    message_end: ({ message }) => {
      if (isModelAnswerCutOff(message)) return this.#note('discard', CUT_OFF);
      return this.#options.asked === 'asked shown' && message.role === 'user' ? this.#question(message) : '';
    },
    text_start: () => this.#startText(),
    text_delta: ({ delta }) => {
      this.#spoken += delta;
      return this.#text(delta);
    },
    text_end: ({ text }) => this.#text(restOfAnswer(text, this.#spoken)) + this.#said(this.#wrap.flush()),
    thinking_start: (event) => {
      this.#thinkingAt = eventTimeMs(event);
      return '';
    },
    thinking_end: (event) => this.#note('aside', `thought for ${timeSince(this.#thinkingAt, event)}`),
    tool_execution_start: (event) => this.#call(event),
    tool_execution_end: (event) => this.#result(event),
    network: (event) => (event.allowed ? '' : this.#note('warning', refusedHostLine(event))),
    permission_request: ({ summary, why }) => this.#note('question', `${summary} — ${why}`),
    permission_decision: (event) => this.#decision(event),
    retry: (event) => this.#again(event),
    model_fallback: (event) => this.#note('again', fallbackEventWords(event)),
    attempt_discarded: (event) => this.#discarded(event),
    compaction_start: ({ tokens: all }) =>
      this.#note('aside', `the conversation has ${countText(all)} tokens and is shortened`),
    compaction_end: (event) =>
      this.#note('aside', event.ok ? `it has ${countText(event.tokens)} now` : notShortenedLine(event.failure)),
    warning: ({ message }) => this.#note('warning', message),
    awaiting_tool_execution: ({ calls }) =>
      this.#note('question', `waiting for ${calls.map(({ summary }) => summary).join(', ')}`),
    gate_start: ({ command }) => this.#note('call', `gate: ${command}`),
    gate_end: (event) =>
      this.#note(event.passed ? 'good' : 'bad', linesViewGate(event), `${durationText(event.durationMs)}  `),
    thinking_delta: unshownInLines,
    toolcall_start: unshownInLines,
    toolcall_delta: unshownInLines,
    toolcall_end: unshownInLines,
    tool_execution_delta: unshownInLines,
    usage: unshownInLines,
    heartbeat: unshownInLines,
    done: unshownInLines,
    incomplete: unshownInLines,
    error: unshownInLines,
    cancelled: unshownInLines,
    run_start: unshownInLines,
    plan_ready: unshownInLines,
    plan_proposed: unshownInLines,
    plan_comment: unshownInLines,
    tasks_reopened: unshownInLines,
    delivered: unshownInLines,
    run_pause: unshownInLines,
    task_message: unshownInLines,
    task_message_delivered: unshownInLines,
    task_ready: unshownInLines,
    task_start: unshownInLines,
    placement: unshownInLines,
    task_end: unshownInLines,
    attempt_moved: unshownInLines,
    merge_start: unshownInLines,
    merge_end: unshownInLines,
    throttle_wait: unshownInLines,
    budget: unshownInLines,
    run_end: unshownInLines,
  };

  constructor(output: Output, style: Style, options: LinesOptions) {
    this.#output = output;
    this.#style = style;
    this.#options = options;
    this.#wrap = options.speech();
  }

  of(event: Shown): string {
    if (event.type !== 'session_end') this.#startedAt ??= eventTimeMs(event);
    const denied = this.#denied.take(event);
    if (denied !== undefined) return this.#note('refusal', `not allowed: ${denied.summary}: ${denied.why}`);
    return (this.#told[event.type] as (event: Shown) => string)(event);
  }

  /** Drover's own words: about what comes, or about what was. */
  words(text: string): string {
    const before = this.rest();
    const indent = this.#block === 'end' ? '  ' : '';
    // A session that continues has no start to tell the time from.
    if (this.#block === 'nothing') this.#startedAt = Date.now();
    if (this.#block === 'nothing') this.#block = 'notes';
    return `${before}${indent}${wrapText(cleanText(text), this.#columns() - indent.length).replaceAll('\n', `\n${indent}`)}\n`;
  }

  /** A line end if one is needed, so that the next text starts on its own line. */
  rest(): string {
    const rest = this.#isLineOpen ? '\n' : '';
    this.#isLineOpen = false;
    return rest;
  }

  #question({ content }: UserMessage): string {
    const text = content.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join('\n');
    const lines = cleanText(text).trim().split('\n');
    const more = lines.length - ASKED_LINES_MAX;
    const shown = more > 0 ? [...lines.slice(0, ASKED_LINES_MAX), `… ${countText(more)} lines more`] : lines;
    const before = this.#enter('asked');
    const words = wrapText(shown.join('\n'), this.#columns() - '❯ '.length).split('\n');
    return before + words.map((line, at) => `${at === 0 ? '❯ ' : '  '}${this.#style('bold', line)}\n`).join('');
  }

  #start(event: Of<'session_start'>): string {
    const before = this.#enter('notes');
    const where = textOnOneLine(`${event.model} in ${event.cwd}`, this.#columns() - 'drover '.length);
    return `${before}${this.#style('bold', 'drover')} ${where}\n`;
  }

  #startText(): string {
    this.#spoken = '';
    this.#isSpeaking = false;
    this.#cleaner = new Cleaner();
    this.#wrap = this.#options.speech();
    if (this.#block === 'text') this.#block = 'other text';
    return '';
  }

  #text(raw: string): string {
    const text = this.#cleaner.push(raw);
    // Blank lines at the beginning of an answer would tear the page apart.
    const shown = this.#isSpeaking ? text : text.trimStart();
    if (shown === '') return '';
    this.#isSpeaking = true;
    return this.#said(this.#wrap.push(shown));
  }

  #said(text: string): string {
    if (text === '') return '';
    const before = this.#enter('text');
    this.#hasSpoken = true;
    this.#isLineOpen = !text.endsWith('\n');
    return before + text;
  }

  #call(event: Of<'tool_execution_start'>): string {
    this.#calls.set(event.callId, eventTimeMs(event));
    const line = this.#note('call', event.summary);
    this.#openCall = event.callId;
    return line;
  }

  #result(event: Of<'tool_execution_end'>): string {
    const { callId, summary, isError } = event;
    if (this.#refused.delete(callId)) return ''; // the decision has said so
    const startedAt = this.#calls.get(callId);
    this.#calls.delete(callId);
    const time = startedAt === undefined ? '' : `${timeSince(startedAt, event)}  `;
    // Calls run side by side: a result says whose it is unless it stands right below its call.
    const whose = this.#openCall === callId ? '' : `${summary} — `;
    const line = this.#note(isError ? 'bad' : 'good', `${whose}${callResultLine(event)}`, time);
    return (
      line +
      callDiffLines(event)
        .map((each) => this.#diffLine(each))
        .join('')
    );
  }

  #diffLine(line: string): string {
    const format = line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : 'dim';
    // Tabs have no width of their own.
    const text = cleanText(line.replaceAll('\t', '  ')).replaceAll('\n', ' ');
    return `      ${this.#style(format, cutText(text, this.#columns() - 6))}\n`;
  }

  #decision({ callId, allowed, always, reason, by }: Of<'permission_decision'>): string {
    if (allowed) return this.#note('good', always ? 'allowed from now on' : 'allowed');
    this.#refused.add(callId);
    return this.#note('refusal', `not allowed: ${reason ?? (by === 'user' ? 'you said no' : 'no terminal to ask on')}`);
  }

  #again(event: Of<'retry'>): string {
    const why = event.reason === this.#discardReason ? '' : `: ${event.reason}`;
    return this.#note('again', retryWords(event) + why);
  }

  #discarded({ reason }: Of<'attempt_discarded'>): string {
    const rest = this.#said(this.#wrap.flush());
    const what = this.#hasSpoken ? 'the text above does not count' : 'this answer does not count';
    this.#hasSpoken = false;
    const line = this.#note('discard', `${what}: ${reason}`);
    this.#discardReason = reason;
    return rest + line;
  }

  #end(event: Of<'session_end'>): string {
    const { outcome, reason, usage, cost } = event;
    const isDone = outcome === 'done';
    const word = `${isDone ? '✓' : '✗'} ${outcome}`;
    const because = isDone || reason === undefined ? '' : `: ${cleanText(reason)}`;
    const figures = [
      ...(this.#startedAt === undefined ? [] : [timeSince(this.#startedAt, event)]),
      ...tokensText(usage),
      ...(cost === undefined ? [] : [dollarsText(cost)]),
    ];
    const before = this.rest() + (this.#block === 'nothing' ? '' : '\n');
    this.#block = 'end';
    this.#startedAt = undefined;
    const coloured = this.#style(isDone ? 'green' : 'red', word);
    const head = before + wrapText(word + because, this.#columns()).replace(word, () => coloured);
    const line = figures.join(' · ');
    if (because === '' && word.length + 2 + line.length <= this.#columns())
      return `${head}  ${this.#style('dim', line)}\n`;
    const lines = 2 + line.length <= this.#columns() ? [line] : figures;
    return [head, ...lines.map((each) => `  ${this.#style('dim', each)}`), ''].join('\n');
  }

  /** A mark, figures that stay whole, and text: on one line, cut to what fits, unless it matters to its end. */
  #note(mark: Mark, text: string, figures = ''): string {
    const before = this.#enter('notes');
    this.#openCall = undefined;
    this.#discardReason = undefined;
    const [format, sign] = MARKS[mark];
    const columns = this.#columns() - '  ▸ '.length;
    const line = WHOLE.has(mark)
      ? wrapText(cleanText(text), columns).replaceAll('\n', '\n    ')
      : textOnOneLine(text, columns - figures.length);
    const said = mark === 'aside' ? this.#style('dim', line) : line;
    return `${before}  ${this.#style(format, sign)} ${this.#style('dim', figures)}${said}\n`;
  }

  /** Ends an open line, and puts an empty one between what is asked, said and done. */
  #enter(block: 'asked' | 'text' | 'notes'): string {
    const changes = this.#block !== 'nothing' && this.#block !== block;
    const before = changes || block !== 'text' ? this.rest() : '';
    this.#block = block;
    return before + (changes ? '\n' : '');
  }

  #columns(): number {
    return terminalColumns(this.#output);
  }
}

/** The verdict of a gate, with the reason of a failure. */
function linesViewGate({ passed, output }: Of<'gate_end'>): string {
  return passed ? 'the gate passes' : `the gate fails: ${output.split('\n').at(-1)}`;
}

/** A host that a command wanted and the sandbox does not allow. */
export function refusedHostLine({ host, port, reason, times = 1 }: Of<'network'>): string {
  const place = `${host}${port === 0 ? '' : `:${port}`}${times > 1 ? ` (${times} times)` : ''}`;
  return `the sandbox did not let a command reach ${place}${reason === undefined ? '' : `: ${reason}`}`;
}

function notShortenedLine(failure: Failure | undefined): string {
  return failure === undefined ? 'it could not be shortened' : describe(failure);
}

function restOfAnswer(whole: string, shown: string): string {
  return whole.startsWith(shown) ? whole.slice(shown.length) : `\n${whole}`;
}

function timeSince(start: number | undefined, event: { readonly at: string }): string {
  return durationText(eventTimeMs(event) - (start ?? eventTimeMs(event)));
}

function eventTimeMs({ at }: { readonly at: string }): number {
  return Date.parse(at);
}
