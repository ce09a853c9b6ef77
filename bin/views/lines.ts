// lines: a run for a person to read, as it happens: what the agent says, and a line for what it does.
//
// It only ever appends, so it reads the same on a terminal, in a pipe and in a CI log; there it is plain,
// and no line is cut. What comes from a model, a tool or a file goes through terminal-text.ts.

import type { Shown } from '@drover/core/bus';
import { type Io, type Output, print } from '../io.ts';
import { dollars, duration, count, tokens } from './figures.ts';
import { type Style, styleFor } from './style.ts';
import { Cleaner, oneLine } from './terminal-text.ts';
import type { View } from './view.ts';

const COLUMNS_MIN = 20;

export function linesView(output: Output, env: Io['env']): View {
  const lines = new Lines(output, styleFor(output, env));
  return {
    show: (event) => print(output, lines.of(event)),
    close: () => print(output, lines.rest()),
  };
}

type Ended<Type extends Shown['type']> = Extract<Shown, { readonly type: Type }>;

/** A fold from events to text. */
class Lines {
  readonly #output: Output;
  readonly #style: Style;
  #block: 'nothing' | 'text' | 'other text' | 'notes' = 'nothing';
  #isLineOpen = false;
  /** The text of the current part as it came, to see what its end has to add. */
  #spoken = '';
  #cleaner = new Cleaner();
  #hasSpoken = false; // in this attempt at an answer
  #startedAt: number | undefined;
  readonly #calls = new Map<string, number>(); // callId -> when it was started
  readonly #refused = new Set<string>();
  /** The call whose start is the last line so far. */
  #openCall: string | undefined;
  #thinkingAt: number | undefined;

  constructor(output: Output, style: Style) {
    this.#output = output;
    this.#style = style;
  }

  of(event: Shown): string {
    switch (event.type) {
      case 'session_start':
        this.#startedAt = timeOf(event);
        return this.#note('', `${this.#style('bold', 'drover')} `, `${event.model} in ${event.cwd}`);
      case 'session_end':
        return this.#end(event);
      case 'message_start':
        this.#hasSpoken = false;
        return '';
      case 'text_start':
        this.#spoken = '';
        this.#cleaner = new Cleaner();
        if (this.#block === 'text') this.#block = 'other text';
        return '';
      case 'text_delta':
        this.#spoken += event.delta;
        return this.#text(event.delta);
      case 'text_end':
        return this.#text(restOf(event.text, this.#spoken));
      case 'thinking_start':
        this.#thinkingAt = timeOf(event);
        return '';
      case 'thinking_end':
        return this.#note('  ', this.#style('dim', '· '), `thought for ${this.#since(this.#thinkingAt, event)}`, 'dim');
      case 'tool_execution_start':
        this.#calls.set(event.callId, timeOf(event));
        return this.#call(event);
      case 'tool_execution_end':
        return this.#result(event);
      case 'permission_request':
        return this.#note('  ', this.#style('yellow', '? '), `${event.summary} — ${event.why}`);
      case 'permission_decision':
        return this.#decision(event);
      case 'retry':
        return this.#note(
          '  ',
          this.#style('yellow', '↻ '),
          `${event.reason}; asking again in ${duration(event.delayMs)}`,
        );
      case 'attempt_discarded':
        return this.#discarded(event);
      case 'compaction_start':
        return this.#note(
          '  ',
          this.#style('dim', '· '),
          `shortening the conversation (${count(event.tokens)} tokens)`,
          'dim',
        );
      case 'compaction_end':
        return this.#compacted(event);
      case 'warning':
        return this.#note('  ', this.#style('yellow', '! '), event.message);
      case 'awaiting_tool_execution':
        return this.#note(
          '  ',
          this.#style('yellow', '… '),
          `waiting for ${event.calls.map(({ summary }) => summary).join(', ')}`,
        );
      case 'message_end':
      case 'thinking_delta':
      case 'toolcall_start':
      case 'toolcall_delta':
      case 'toolcall_end':
      case 'tool_execution_delta':
      case 'usage':
      case 'heartbeat':
      case 'done':
      case 'incomplete':
      case 'error':
      case 'cancelled':
        return ''; // told by what comes next to them, or of no interest to a reader
    }
  }

  /** What is needed so that whatever comes next begins on a line of its own. */
  rest(): string {
    const rest = this.#isLineOpen ? '\n' : '';
    this.#isLineOpen = false;
    return rest;
  }

  #text(raw: string): string {
    const text = this.#cleaner.push(raw);
    // Blank lines at the beginning of an answer would tear the page apart.
    const shown = this.#block === 'text' ? text : text.trimStart();
    if (shown === '') return '';
    const before = this.#enter('text');
    this.#hasSpoken = true;
    this.#isLineOpen = !shown.endsWith('\n');
    return before + shown;
  }

  #call({ callId, summary }: Ended<'tool_execution_start'>): string {
    const line = this.#note('  ', this.#style('cyan', '▸ '), summary);
    this.#openCall = callId;
    return line;
  }

  #result({ callId, summary, outputSummary, isError, ...event }: Ended<'tool_execution_end'>): string {
    if (this.#refused.delete(callId)) return ''; // the decision has said so
    const startedAt = this.#calls.get(callId);
    this.#calls.delete(callId);
    const mark = isError ? this.#style('red', '✗ ') : this.#style('green', '✓ ');
    const time = startedAt === undefined ? '' : `${this.#since(startedAt, event)}  `;
    // Calls run side by side: a result says whose it is unless it stands right below its call.
    const whose = this.#openCall === callId ? '' : `${summary}  `;
    return this.#note('  ', mark, `${time}${whose}${outputSummary}`);
  }

  #decision({ callId, allowed, always, reason, by }: Ended<'permission_decision'>): string {
    if (allowed) return this.#note('  ', this.#style('green', '✓ '), always ? 'allowed from now on' : 'allowed');
    this.#refused.add(callId);
    const why = reason ?? (by === 'user' ? 'you said no' : 'nobody is there to ask');
    return this.#note('  ', this.#style('red', '✗ '), `not allowed: ${why}`);
  }

  #discarded({ reason }: Ended<'attempt_discarded'>): string {
    const what = this.#hasSpoken ? 'discarded, so the text above does not count' : 'this answer is discarded';
    this.#hasSpoken = false;
    return this.#note('  ', this.#style('yellow', '⨯ '), `${what}: ${reason}`);
  }

  #compacted({ ok, tokens: left }: Ended<'compaction_end'>): string {
    const text = ok ? `shortened to ${count(left)} tokens` : 'it could not be shortened';
    return this.#note('  ', this.#style('dim', '· '), text, 'dim');
  }

  #end(event: Ended<'session_end'>): string {
    const { outcome, reason, usage, cost } = event;
    const word = outcome === 'done' ? this.#style('green', '✓ done') : this.#style('red', `✗ ${outcome}`);
    const because = reason === undefined || outcome === 'done' ? '' : `: ${new Cleaner().push(reason)}`;
    const figures = [
      ...(this.#startedAt === undefined ? [] : [this.#since(this.#startedAt, event)]),
      tokens(usage),
      ...(cost === undefined ? [] : [dollars(cost)]),
    ].join(' · ');
    const gap = this.#block === 'nothing' ? '' : '\n';
    const before = this.rest() + gap;
    this.#block = 'nothing';
    const separator = because === '' ? '  ' : '\n  ';
    return `${before}${word}${because}${separator}${this.#style('dim', figures)}\n`;
  }

  /** One line: an indent, a mark, and text cut to what fits. */
  #note(indent: string, mark: string, text: string, format?: 'dim'): string {
    const before = this.#enter('notes');
    this.#openCall = undefined;
    const columns = this.#output.isTTY === true ? Math.max(this.#output.columns ?? 80, COLUMNS_MIN) : Infinity;
    const markColumns = indent === '' ? 'drover '.length : 2;
    const line = oneLine(text, columns - indent.length - markColumns);
    return `${before}${indent}${mark}${format === undefined ? line : this.#style(format, line)}\n`;
  }

  /** Ends an open line, and puts an empty one between what is said and what is done. */
  #enter(block: 'text' | 'notes'): string {
    const changes = this.#block !== 'nothing' && this.#block !== block;
    const before = changes || block === 'notes' ? this.rest() : '';
    this.#block = block;
    return before + (changes ? '\n' : '');
  }

  #since(start: number | undefined, event: { readonly at: string }): string {
    return duration(timeOf(event) - (start ?? timeOf(event)));
  }
}

/** What the end of a part adds to the deltas shown. Where some were dropped in between, the whole is shown again. */
function restOf(whole: string, shown: string): string {
  return whole.startsWith(shown) ? whole.slice(shown.length) : `\n${whole}`;
}

function timeOf({ at }: { readonly at: string }): number {
  return Date.parse(at);
}
