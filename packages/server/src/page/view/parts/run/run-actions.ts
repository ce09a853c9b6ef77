// Buttons for a run that is not at work: resume, retry, merge, and the diff of everything that has landed.

import type { RunState } from '@drover/coordinator/view/state';
import { pageErrorWords } from '../../app.ts';
import { domButton, h, markDomElement, setDomText, showDomElement } from '../../dom.ts';
import { runPartPatchList } from './patch-list.ts';

export type RunDeeds = {
  readonly resume: () => Promise<void>;
  readonly retry: () => Promise<void>;
  /** Returns what was delivered, in words. */
  readonly merge: () => Promise<string>;
  readonly diff: () => Promise<string>;
};

const FAILED: ReadonlySet<string> = new Set(['failed', 'conflict', 'gate_failed', 'skipped']);

export class RunActions {
  readonly element: HTMLElement;
  readonly #buttons: Readonly<Record<keyof RunDeeds, HTMLButtonElement>>;
  readonly #outcome = h('p', { class: 'quiet', is: { role: 'status', hidden: true } });
  readonly #problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
  readonly #patch = h('div', {});

  constructor(deeds: RunDeeds) {
    this.#buttons = {
      resume: domButton('Resume', () => void this.#do(deeds.resume)),
      retry: domButton('Retry what failed', () => void this.#do(deeds.retry)),
      merge: domButton('Merge', () => void this.#do(async () => this.#tell(await deeds.merge()))),
      diff: domButton('Diff of the run', () => void this.#toggleDiff(deeds.diff), { is: { 'aria-expanded': 'false' } }),
    };
    const answers = h('div', { class: 'answers' }, ...Object.values(this.#buttons));
    this.element = h(
      'section',
      { class: 'run-actions', is: { 'aria-label': 'Actions' } },
      answers,
      this.#outcome,
      this.#problem,
      this.#patch,
    );
  }

  update(state: RunState, isAtRest: boolean): void {
    const hasLanded = state.landed.length > 0;
    const hasFailed = [...state.tasks.values()].some((task) => FAILED.has(task.state));
    showDomElement(this.#buttons.resume, isAtRest && state.end?.outcome !== 'done');
    showDomElement(this.#buttons.retry, isAtRest && hasFailed);
    showDomElement(this.#buttons.merge, isAtRest && hasLanded);
    showDomElement(this.#buttons.diff, hasLanded);
  }

  /** Read anew each time it is opened, for more may have landed. */
  async #toggleDiff(read: RunDeeds['diff']): Promise<void> {
    const isOpen = this.#patch.childElementCount > 0;
    if (isOpen) this.#patch.replaceChildren();
    else await this.#do(async () => this.#patch.replaceChildren(runPartPatchList(await read())));
    markDomElement(this.#buttons.diff, 'aria-expanded', this.#patch.childElementCount > 0 ? 'true' : 'false');
  }

  #tell(text: string): void {
    showDomElement(this.#outcome, true);
    setDomText(this.#outcome, text);
  }

  async #do(deed: () => Promise<void>): Promise<void> {
    const buttons = Object.values(this.#buttons);
    for (const each of buttons) each.disabled = true;
    showDomElement(this.#problem, false);
    try {
      await deed();
    } catch (error) {
      showDomElement(this.#problem, true);
      setDomText(this.#problem, pageErrorWords(error));
    } finally {
      for (const each of buttons) each.disabled = false;
    }
  }
}
