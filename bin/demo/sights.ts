// The demo's view: shows every event, and remembers the ones worth pointing out at the end.

import type { Shown } from '@drover/core/bus';
import type { RunView } from '../views/view.ts';
import type { Style } from '../views/text/style.ts';
import { wrapText } from '../views/text/word-wrap.ts';

type Page = { readonly columns: number; readonly style: Style };

export class Sights implements RunView {
  readonly #view: RunView;
  readonly #seen: Shown[] = [];

  constructor(view: RunView) {
    this.#view = view;
  }

  show(event: Shown): Promise<void> | undefined {
    if (!event.type.endsWith('_delta')) this.#seen.push(event);
    return this.#view.show(event);
  }

  say(text: string): Promise<void> {
    return this.#view.say(text);
  }

  close(): Promise<void> {
    return this.#view.close();
  }

  whileAsking<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return this.#view.whileAsking(ask);
  }

  /** Only what did happen is told of. */
  told(history: readonly string[], { columns, style }: Page): string {
    const points = [this.#conflict(), this.#gate(), this.#throttle(), this.#cache()].filter(
      (line) => line !== undefined,
    );
    const item = (line: string) => `  · ${wrapText(line, columns - 4).replaceAll('\n', '\n    ')}`;
    return [
      '',
      style('bold', 'What you saw'),
      ...points.map(item),
      '',
      style('bold', 'One commit per task, the newest first'),
      ...history.map((line) => `  ${line}`),
      '',
    ].join('\n');
  }

  #conflict(): string | undefined {
    const found = this.#seen.find((event) => event.type === 'merge_end' && event.again);
    return found && `${found.task} changed the same lines as a task before it: it was done once more, on top of that.`;
  }

  #gate(): string | undefined {
    const found = this.#seen.find((event) => event.type === 'merge_end' && event.outcome === 'gate_failed');
    return (
      found &&
      `${found.task} passed the tests alone and failed them with the others: it was found and left out, the rest landed, and a second plan made it good.`
    );
  }

  #throttle(): string | undefined {
    const found = this.#seen.find((event) => event.type === 'retry' && event.failure.kind === 'provider.throttled');
    return (
      found && `The provider refused one request of ${found.task} with 429: all workers slowed down, not just that one.`
    );
  }

  #cache(): string | undefined {
    const end = this.#seen.findLast((event) => event.type === 'run_end');
    if (end?.type !== 'run_end') return undefined;
    const { input, cacheRead, cacheWrite } = end.usage;
    const share = Math.round((100 * cacheRead) / Math.max(1, input + cacheRead + cacheWrite));
    return `Workers begin with the coordinator’s conversation: ${share} % of all they sent was read from the provider’s cache.`;
  }
}
