// The panel that is open below the rows: the conversation, the diff or the log of a task, or the list of keys.
//
// The diff and the log are read when they are opened; the log and the conversation follow what comes.

import type { RunDesk } from '../../view.ts';
import { colourPatch } from '../../../result/diff-style.ts';
import { formatRecordLine } from '../../../history/summary/record-line.ts';
import type { Looks } from '../../markdown/spans.ts';
import { terminalColumns, textOnOneLine } from '../../text/terminal-text.ts';
import { wrapText } from '../../text/word-wrap.ts';
import type { Output } from '../../../io.ts';
import type { Panel } from '../frame.ts';
import { COORDINATOR } from '../rows.ts';
import type { Conversations } from './conversation.ts';
import { ConversationRows } from './conversation-rows.ts';
import { dashboardKeyRows } from './key-help.ts';

const LOG_LINES_MAX = 5_000;
const NAMES_MIN = 'coordinator'.length;

export type PanelKind = 'conversation' | 'diff' | 'log' | 'keys';

export type PanelsOptions = {
  readonly output: Output;
  readonly looks: Looks;
  readonly conversations: Conversations;
  readonly onChange: () => void;
};

type Opened = { readonly kind: PanelKind; readonly who: string; readonly close: AbortController };

export class Panels {
  readonly #options: PanelsOptions;
  readonly #rows = new ConversationRows();
  #opened: Opened | undefined;
  #top: number | undefined;
  #lines: readonly string[] = []; // of a diff or a log
  #title = '';
  #height = 0;

  constructor(options: PanelsOptions) {
    this.#options = options;
  }

  get opened(): PanelKind | undefined {
    return this.#opened?.kind;
  }

  open(kind: PanelKind, who: string, desk: RunDesk | undefined): void {
    this.close();
    const opened = { kind, who, close: new AbortController() };
    this.#opened = opened;
    this.#top = kind === 'conversation' || kind === 'log' ? undefined : 0;
    this.#lines = [];
    this.#title = {
      conversation: `${who} · conversation`,
      diff: `${who} · changes`,
      log: `${who} · log`,
      keys: 'keys',
    }[kind];
    if (kind === 'diff') void this.#readDiff(opened, desk);
    if (kind === 'log') void this.#readLog(opened, desk);
  }

  /** Shows the same of another task. */
  turnTo(who: string, desk: RunDesk | undefined): void {
    if (this.#opened !== undefined && this.#opened.kind !== 'keys') this.open(this.#opened.kind, who, desk);
  }

  close(): void {
    this.#opened?.close.abort();
    this.#opened = undefined;
  }

  /** The panel as it is drawn now. */
  panel(columns: number): Panel | undefined {
    if (this.#opened === undefined) return undefined;
    return { title: this.#title, rows: this.#rowsOf(this.#opened, columns), top: this.#top };
  }

  /** The rows of the panel that were on the screen. */
  drawn(height: number): void {
    this.#height = height;
  }

  scroll(step: 'up' | 'down' | 'pageup' | 'pagedown' | 'home' | 'end'): void {
    const columns = this.#columns;
    const count = this.panel(columns)?.rows.length ?? 0;
    const last = Math.max(0, count - this.#height);
    const page = Math.max(1, this.#height - 1);
    const by = { up: -1, down: 1, pageup: -page, pagedown: page, home: -count, end: count }[step];
    const top = Math.max(0, Math.min(this.#top ?? last, last) + by);
    const follows = this.opened === 'conversation' || this.opened === 'log';
    this.#top = top >= last && follows ? undefined : Math.min(top, last);
  }

  get #columns(): number {
    return terminalColumns(this.#options.output) - 1;
  }

  #rowsOf({ kind, who }: Opened, columns: number): readonly string[] {
    if (kind === 'keys') return dashboardKeyRows(columns);
    if (kind !== 'conversation') return this.#lines;
    const { conversations, looks, onChange } = this.#options;
    const rows = this.#rows.of(conversations.of(who), { columns, looks, onLoaded: onChange });
    if (rows.length === 0) return [looks.style('dim', 'nothing was said yet')];
    const isCut = conversations.isCut(who);
    return isCut ? [looks.style('dim', '… press l for what came before'), ...rows] : rows;
  }

  async #readDiff(opened: Opened, desk: RunDesk | undefined): Promise<void> {
    const { looks } = this.#options;
    this.#show(opened, [looks.style('dim', 'reading the changes …')]);
    try {
      const patch = opened.who === COORDINATOR ? '' : ((await desk?.diff(opened.who)) ?? '');
      const lines = colourPatch(patch.trimEnd().replaceAll('\t', '  '), looks.style).split('\n');
      this.#show(opened, patch.trim() === '' ? [looks.style('dim', 'no changes')] : lines);
    } catch (error) {
      this.#show(opened, panelErrorRows(error, this.#columns));
    }
  }

  async #readLog(opened: Opened, desk: RunDesk | undefined): Promise<void> {
    const { looks } = this.#options;
    const lines: string[] = [];
    try {
      for await (const record of desk?.log(opened.who, opened.close.signal) ?? []) {
        const names = Math.max(NAMES_MIN, opened.who.length + 4);
        lines.push(formatRecordLine(record, 'gists', { columns: this.#columns, style: looks.style, names }).trimEnd());
        if (lines.length > LOG_LINES_MAX) lines.splice(0, lines.length - LOG_LINES_MAX);
        this.#show(opened, lines);
      }
    } catch (error) {
      if (!opened.close.signal.aborted) this.#show(opened, [...lines, ...panelErrorRows(error, this.#columns)]);
    }
  }

  #show(opened: Opened, lines: readonly string[]): void {
    if (this.#opened !== opened) return;
    this.#lines = lines;
    this.#options.onChange();
  }
}

function panelErrorRows(error: unknown, columns: number): readonly string[] {
  const text = error instanceof Error ? error.message : String(error);
  return wrapText(textOnOneLine(text, Number.POSITIVE_INFINITY), columns).trimEnd().split('\n');
}
