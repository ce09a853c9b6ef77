// Questions whether a call may run, as cards with three answers. Each is answered once; what the server says to
// it stands below.

import type { OpenQuestion, PermissionAnswer } from '@drover/client/wire';
import { announce, button, fill, h, say, show } from '../dom.ts';

export type Answering = (requestId: string, answer: PermissionAnswer) => Promise<void>;

type Card = { readonly element: HTMLElement };

export class QuestionCards {
  readonly element = h('section', { class: 'questions', is: { 'aria-label': 'Questions for you', hidden: true } });
  readonly #answer: Answering;
  #cards = new Map<string, Card>();

  constructor(answer: Answering) {
    this.#answer = answer;
  }

  update(questions: readonly OpenQuestion[], whose: (question: OpenQuestion) => string): void {
    const cards = new Map<string, Card>();
    for (const question of questions) {
      const { requestId } = question;
      cards.set(requestId, this.#cards.get(requestId) ?? this.#card(question, whose(question)));
    }
    if (cards.size > this.#cards.size) announce(`A question: may it run ${questions.at(-1)?.subject ?? ''}?`);
    this.#cards = cards;
    fill(
      this.element,
      [...cards.values()].map(({ element }) => element),
    );
    show(this.element, cards.size > 0);
  }

  #card({ requestId, name, subject, why }: OpenQuestion, whose: string): Card {
    const problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
    const answers = [
      ['Allow once', 'primary', { allowed: true }],
      ['Always allow', '', { allowed: true, always: true }],
      ['No', 'danger', { allowed: false }],
    ] as const;
    const buttons = answers.map(([label, look, answer]) =>
      button(label, () => void give(answer), { class: look, is: { 'aria-label': `${label}: ${subject}` } }),
    );
    const give = async (answer: PermissionAnswer) => {
      for (const each of buttons) each.disabled = true;
      try {
        await this.#answer(requestId, answer);
        announce(answer.allowed ? 'Allowed' : 'Refused');
      } catch (error) {
        for (const each of buttons) each.disabled = false;
        show(problem, true);
        say(problem, error instanceof Error ? error.message : String(error));
      }
    };
    const head = h(
      'p',
      { class: 'question-head' },
      h('b', {}, whose),
      ' asks to run ',
      h('span', { class: 'badge' }, name),
    );
    const body = h('div', {}, head, h('pre', { class: 'subject' }, subject), h('p', { class: 'quiet' }, why));
    return { element: h('article', { class: 'question' }, body, h('div', { class: 'answers' }, ...buttons), problem) };
  }
}
