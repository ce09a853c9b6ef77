// Controls of one task: a message to its worker and cancel while the run is at work; retry, also later.

import type { TaskProgress } from '@drover/coordinator/view/state';
import { pageErrorWords } from '../../app.ts';
import type { RunStanding } from './run-head.ts';
import { announceInDom, domButton, h, setDomText, showDomElement } from '../../dom.ts';

export type TaskDeeds = {
  readonly message: (task: string, text: string) => Promise<void>;
  readonly cancel: (task: string) => Promise<void>;
  readonly retry: (task: string) => Promise<void>;
};

const FAILED: ReadonlySet<string> = new Set(['failed', 'conflict', 'gate_failed', 'skipped', 'cancelled']);

export class TaskDesk {
  readonly element: HTMLElement;
  readonly #deeds: TaskDeeds;
  readonly #text = h('input', {
    is: { type: 'text', id: 'task-message', autocomplete: 'off', placeholder: 'The worker reads it at its next step' },
  });
  readonly #form: HTMLFormElement;
  readonly #cancel = domButton('Cancel task', () => void this.#do(() => this.#deeds.cancel(this.#task)), {
    class: 'danger',
  });
  readonly #retry = domButton('Retry task', () => void this.#do(() => this.#deeds.retry(this.#task)));
  readonly #waiting = h('p', { class: 'quiet', is: { role: 'status', hidden: true } });
  readonly #problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
  #task = '';

  constructor(deeds: TaskDeeds) {
    this.#deeds = deeds;
    const submit = (event: Event) => {
      event.preventDefault();
      void this.#send();
    };
    this.#form = h(
      'form',
      { class: 'task-message', on: { submit } },
      h('label', { is: { for: 'task-message' } }, 'Message to the worker'),
      this.#text,
      h('button', { is: { type: 'submit' } }, 'Send'),
    );
    const answers = h('div', { class: 'answers' }, this.#cancel, this.#retry);
    this.element = h(
      'section',
      { class: 'task-desk', is: { 'aria-label': 'This task', hidden: true } },
      this.#form,
      answers,
      this.#waiting,
      this.#problem,
    );
  }

  update(task: TaskProgress | undefined, standing: RunStanding): void {
    const isAtWork = standing === 'live';
    const isOther = task?.id !== this.#task;
    this.#task = task?.id ?? '';
    if (isOther) showDomElement(this.#problem, false);
    const canRetry = task !== undefined && FAILED.has(task.state);
    const isOpen = isAtWork && task !== undefined && task.endedMs === undefined;
    showDomElement(this.element, standing !== 'loading' && (canRetry || isOpen));
    showDomElement(this.#form, isOpen);
    showDomElement(this.#cancel, isOpen);
    showDomElement(this.#retry, canRetry);
    const texts = task?.messages.map(({ text }) => text) ?? [];
    showDomElement(this.#waiting, texts.length > 0);
    setDomText(this.#waiting, `Not read yet: ${texts.join(' · ')}`);
  }

  async #send(): Promise<void> {
    const text = this.#text.value.trim();
    if (text === '') return;
    if (await this.#do(() => this.#deeds.message(this.#task, text))) {
      this.#text.value = '';
      announceInDom('Sent to the worker');
    }
  }

  async #do(deed: () => Promise<void>): Promise<boolean> {
    showDomElement(this.#problem, false);
    try {
      await deed();
      return true;
    } catch (error) {
      showDomElement(this.#problem, true);
      setDomText(this.#problem, pageErrorWords(error));
      return false;
    }
  }
}
