// A plan that waits for approval: its tasks, and the answers to it. Each plan is answered once.

import type { PlanAnswer } from '@drover/client/wire';
import type { PlannedTask } from '@drover/protocol/plan';
import { pageErrorWords } from '../../app.ts';
import { announceInDom, domButton, fillDomElement, h, setDomText, showDomElement } from '../../dom.ts';
import { markdown } from '../markdown/markdown-body.ts';

export type PlanAnswering = (answer: PlanAnswer) => Promise<void>;

export class PlanCard {
  readonly element = h('section', {
    class: 'questions plan',
    is: { 'aria-label': 'Plan for you to approve', hidden: true },
  });
  readonly #answer: PlanAnswering;
  #shown: readonly PlannedTask[] | undefined;

  constructor(answer: PlanAnswering) {
    this.#answer = answer;
  }

  update(tasks: readonly PlannedTask[] | undefined): void {
    if (tasks === this.#shown) return;
    this.#shown = tasks;
    fillDomElement(this.element, tasks === undefined ? [] : [this.#card(tasks)]);
    showDomElement(this.element, tasks !== undefined);
    if (tasks !== undefined) announceInDom('A plan waits for your approval');
  }

  #card(tasks: readonly PlannedTask[]): HTMLElement {
    const problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
    const comment = h('textarea', {
      is: { rows: 2, 'aria-label': 'Comment on the plan', placeholder: 'What should change?' },
    });
    const give = async (answer: PlanAnswer) => {
      for (const each of buttons) each.disabled = true;
      try {
        await this.#answer(answer);
      } catch (error) {
        for (const each of buttons) each.disabled = false;
        showDomElement(problem, true);
        setDomText(problem, pageErrorWords(error));
      }
    };
    const sendComment = () => {
      const text = comment.value.trim();
      if (text === '') comment.focus();
      else void give({ answer: 'comment', comment: text });
    };
    const buttons = [
      domButton('Run this plan', () => void give({ answer: 'run' }), { class: 'primary' }),
      domButton('Send comment', sendComment),
      domButton('Stop', () => void give({ answer: 'stop' }), { class: 'danger' }),
    ];
    const many = tasks.length === 1 ? '1 task' : `${tasks.length} tasks`;
    return h(
      'article',
      { class: 'question' },
      h(
        'div',
        { class: 'question-body' },
        h('p', { class: 'question-head' }, h('b', {}, 'The plan'), ` has ${many}. Nothing runs until you say so.`),
        h('ul', { class: 'plan-tasks' }, ...tasks.map(runPartPlannedTask)),
        comment,
      ),
      h('div', { class: 'answers' }, ...buttons),
      problem,
    );
  }
}

function runPartPlannedTask({ id, title, files, dependsOn, mode, prompt }: PlannedTask): HTMLElement {
  const facts = [
    mode === 'read' ? 'reads only' : 'writes',
    files.length === 0 ? 'files not named' : `files ${files.join(', ')}`,
    dependsOn.length === 0 ? 'waits for nothing' : `waits for ${dependsOn.join(', ')}`,
  ];
  const summary = h(
    'summary',
    {},
    h('code', {}, id),
    ' ',
    title,
    h('small', { class: 'quiet' }, ` ${facts.join(' · ')}`),
  );
  return h('li', {}, h('details', {}, summary, markdown(prompt)));
}
