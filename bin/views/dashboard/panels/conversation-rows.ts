// A conversation as rows of a panel: Markdown, calls with the end of their output, notes.
//
// A block is laid out again only if its text or the width has changed.

import { MarkdownStream, prepareMarkdown } from '../../markdown/markdown-stream.ts';
import type { Looks } from '../../markdown/spans.ts';
import { cleanText, cutText, textOnOneLine } from '../../text/terminal-text.ts';
import { wrapText } from '../../text/word-wrap.ts';
import type { Block, CallStatus } from './conversation.ts';

const USER_LINES_MAX = 12;
const THINKING_LINES_MAX = 4;
const OUTPUT_LINES_MAX = 8; // of a call that runs or failed
const RESULT_LINES_MAX = 2; // of a call that is done

export type RowsPage = {
  readonly columns: number;
  readonly looks: Looks;
  /** Called when the Markdown code has been loaded: the rows look different now. */
  readonly onLoaded: () => void;
};

type Laid = { readonly text: string; readonly columns: number; readonly rows: readonly string[] };

export class ConversationRows {
  #laid = new WeakMap<Block, Laid>();
  #isLoading = false;

  of(blocks: readonly Block[], page: RowsPage): readonly string[] {
    return blocks.flatMap((block, at) => {
      const rows = this.#rows(block, page);
      const isApart = at > 0 && (block.kind === 'text' || block.kind === 'user' || block.kind === 'queued');
      return rows.length === 0 ? [] : [...(isApart ? [''] : []), ...rows];
    });
  }

  #rows(block: Block, page: RowsPage): readonly string[] {
    const text = block.kind === 'call' ? `${block.status} ${block.output}` : block.text;
    const known = this.#laid.get(block);
    if (known?.text === text && known.columns === page.columns) return known.rows;
    const rows = this.#layOut(block, page);
    if (!this.#isLoading) this.#laid.set(block, { text, columns: page.columns, rows });
    return rows;
  }

  #layOut(block: Block, page: RowsPage): readonly string[] {
    const { looks } = page;
    switch (block.kind) {
      case 'text':
        return this.#markdown(block.text, page);
      case 'user':
        return conversationSaidRows(block.text, page, '› ').map((line) => looks.style('bold', line));
      case 'queued':
        return conversationSaidRows(block.text, page, '› queued: ').map((line) => looks.style('yellow', line));
      case 'thinking':
        return lastOutputRows(block.text, page, THINKING_LINES_MAX).map((line) => looks.style('dim', line));
      case 'call':
        return conversationCallRows(block, page);
      case 'note':
        return [looks.style('dim', cutText(`· ${textOnOneLine(block.text, page.columns)}`, page.columns))];
    }
  }

  #markdown(text: string, { columns, looks, onLoaded }: RowsPage): readonly string[] {
    const loading = prepareMarkdown(`${text}\n`, looks.isColoured);
    if (loading !== undefined) {
      this.#isLoading = true;
      void loading.then(() => {
        this.#isLoading = false;
        this.#laid = new WeakMap();
        onLoaded();
      });
      return conversationTextRows(text, columns);
    }
    const stream = new MarkdownStream({ columns: () => columns, looks });
    return [...stream.push(text), ...stream.end()];
  }
}

const SIGNS: Readonly<Record<CallStatus, readonly [format: 'yellow' | 'cyan' | 'green' | 'red', sign: string]>> = {
  asking: ['yellow', '?'],
  running: ['cyan', '▸'],
  done: ['green', '✓'],
  failed: ['red', '✗'],
};

function conversationCallRows(
  { text, output, status }: Extract<Block, { kind: 'call' }>,
  page: RowsPage,
): readonly string[] {
  const { columns, looks } = page;
  const [format, sign] = SIGNS[status];
  const most = status === 'done' ? RESULT_LINES_MAX : OUTPUT_LINES_MAX;
  const lines = lastOutputRows(output, { ...page, columns: columns - 2 }, most);
  return [
    `${looks.style(format, sign)} ${textOnOneLine(text, columns - 2)}`,
    ...lines.map((line) => looks.style('dim', `  ${line}`)),
  ];
}

function conversationSaidRows(text: string, { columns }: RowsPage, mark: string): readonly string[] {
  const lines = conversationTextRows(text, columns - mark.length);
  const more = lines.length - USER_LINES_MAX;
  const shown = more > 1 ? [...lines.slice(0, USER_LINES_MAX), `… ${more} more lines`] : lines;
  return shown.map((line, at) => (at === 0 ? mark : ' '.repeat(mark.length)) + line);
}

function lastOutputRows(text: string, { columns }: Pick<RowsPage, 'columns'>, most: number): readonly string[] {
  return conversationTextRows(text.trimEnd(), columns).slice(-most);
}

function conversationTextRows(text: string, columns: number): readonly string[] {
  if (text.trim() === '') return [];
  const whole = wrapText(cleanText(text).replaceAll('\t', '  '), columns);
  return whole.split('\n').map((line) => cutText(line, columns));
}
