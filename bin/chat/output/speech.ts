// Speech of the agent in a chat, as Markdown: finished blocks stay on the screen, the last one is painted until it is.

import { isAsciiTerminal, textStyle } from '../../views/text/style.ts';
import { terminalKnowsLinks } from '../../views/markdown/links.ts';
import { MarkdownStream, prepareMarkdown } from '../../views/markdown/markdown-stream.ts';
import type { Looks } from '../../views/markdown/spans.ts';
import type { Speech } from '../../views/lines.ts';
import type { Io } from '../../io.ts';
import type { Screen } from '../screen/screen.ts';

export class MarkdownSpeech implements Speech {
  readonly #stream: MarkdownStream;
  readonly #isColoured: boolean;
  #line = ''; // the last line, for the language of a fence

  constructor(screen: Pick<Screen, 'columns' | 'output'>, env: Io['env']) {
    const looks = speechLooks(screen, env);
    this.#isColoured = looks.isColoured;
    this.#stream = new MarkdownStream({ columns: () => screen.columns - 1, looks });
  }

  /** Loads what the text needs. Call it before the text is pushed. */
  ready(text: string): Promise<unknown> | undefined {
    return prepareMarkdown(this.#line + text, this.#isColoured);
  }

  push(text: string): string {
    this.#line = (this.#line + text).slice((this.#line + text).lastIndexOf('\n') + 1);
    return speechLines(this.#stream.push(text));
  }

  flush(): string {
    return this.#stream.tail.trim() === '' ? '' : speechLines(this.#stream.end());
  }

  /** The rows that may still change. */
  live(): readonly string[] {
    return this.#stream.live();
  }
}

function speechLines(rows: readonly string[]): string {
  return rows.length === 0 ? '' : `${rows.join('\n')}\n`;
}

function speechLooks({ output }: Pick<Screen, 'output'>, env: Io['env']): Looks {
  const style = textStyle(output, env);
  const isColoured = style('bold', 'x') !== 'x';
  return { style, isColoured, isAscii: isAsciiTerminal(env), hasLinks: isColoured && terminalKnowsLinks(env, true) };
}
