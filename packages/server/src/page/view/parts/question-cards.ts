// Permission questions: the oldest one as a card with three answers, words for the agent with a no, and the number
// behind it. Each is answered once, and a refusal by the server is shown below it. An idle user's focus moves to a new
// question, not onto an answer.

import type { OpenQuestion, PermissionAnswer } from '@drover/client/wire';
import { pageErrorWords as errorWords } from '../app.ts';
import { announceInDom, domButton, fillDomElement, h, setDomText, showDomElement } from '../dom.ts';

export type Answering = (requestId: string, answer: PermissionAnswer) => Promise<void>;

const ANSWERS = [
  ['Allow once', 'primary', { allowed: true }],
  ['Always allow', '', { allowed: true, always: true }],
  ['Don’t allow', 'danger', { allowed: false }],
] as const;

const FIELD_ANSWERS = [
  ['Send', 'primary', { allowed: true }],
  ['Decline', 'danger', { allowed: false }],
] as const;

const ALWAYS = 'Always allow: exactly this, until the end of its run or session.';

export class QuestionCards {
  readonly element = h('section', { class: 'questions', is: { 'aria-label': 'Questions for you', hidden: true } });
  readonly #answer: Answering;
  readonly #more = h('small', { class: 'quiet' });
  #shown = ''; // the question on the card

  constructor(answer: Answering) {
    this.#answer = answer;
  }

  update(questions: readonly OpenQuestion[], whose: (question: OpenQuestion) => string): void {
    const [first] = questions;
    const behind = questions.length - 1;
    setDomText(this.#more, behind === 1 ? 'one more waits' : `${behind} more wait`);
    showDomElement(this.#more, behind > 0);
    if ((first?.requestId ?? '') === this.#shown) return;
    const main = document.getElementById('main');
    const { activeElement } = document;
    const isIdle = [null, document.body, main].includes(activeElement as HTMLElement | null);
    const wasHere = this.element.contains(activeElement);
    this.#shown = first?.requestId ?? '';
    const card = first && this.#card(first, whose(first));
    fillDomElement(this.element, card === undefined ? [] : [card]);
    showDomElement(this.element, card !== undefined);
    if (first !== undefined) announceInDom(`A question: may it run ${first.subject}?`);
    if (isIdle || wasHere) (card ?? main)?.focus({ preventScroll: true });
  }

  #card(question: OpenQuestion, whose: string): HTMLElement {
    const { requestId, name, subject, why, field } = question;
    const problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
    const words = h('input', {
      is: {
        type: 'text',
        autocomplete: 'off',
        'aria-label': field === undefined ? 'Words with a no' : `Value of ${field.name}`,
        placeholder: field === undefined ? 'With a no: what to do instead' : fieldHint(field),
      },
    });
    const press = (answer: PermissionAnswer) => {
      if (field !== undefined) return void give(answer.allowed ? { ...answer, words: words.value } : answer);
      const said = words.value.trim();
      void give(answer.allowed || said === '' ? answer : { ...answer, words: said });
    };
    const buttons = (field === undefined ? ANSWERS : FIELD_ANSWERS).map(([label, look, answer]) =>
      domButton(label, () => press(answer), { class: look, is: { 'aria-label': `${label}: ${subject}` } }),
    );
    const give = async (answer: PermissionAnswer) => {
      for (const each of buttons) each.disabled = true;
      try {
        await this.#answer(requestId, answer);
        announceInDom(answer.allowed ? 'Allowed' : 'Refused');
      } catch (error) {
        for (const each of buttons) each.disabled = false;
        showDomElement(problem, true);
        setDomText(problem, errorWords(error));
      }
    };
    const who = h('p', { class: 'question-head' }, h('b', {}, whose), ' asks to run ', h('code', {}, name), this.#more);
    return h(
      'article',
      { class: 'question', is: { tabindex: -1, 'aria-label': `${whose} asks to run ${name}: ${subject}` } },
      h(
        'div',
        { class: 'question-body' },
        who,
        h('pre', { class: 'subject' }, subject),
        h('p', { class: 'quiet' }, field === undefined ? `${why}. ${ALWAYS}` : `${why}.`),
      ),
      h('div', { class: 'answers' }, ...buttons, words),
      problem,
    );
  }
}

function fieldHint({ name, kind, default: fallback }: NonNullable<OpenQuestion['field']>): string {
  return `${name}: ${kind}${fallback === undefined ? '' : `; nothing takes ${fallback}`}`;
}
