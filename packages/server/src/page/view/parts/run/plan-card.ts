// A plan that waits for approval: its tasks, and the answers to it. Each plan is answered once.

import type { PlanAnswer } from '@drover/client/wire';
import type { PlannedTask } from '@drover/protocol/plan';
import { words } from '../../app.ts';
import { announce, button, fill, h, say, show } from '../../dom.ts';
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
    fill(this.element, tasks === undefined ? [] : [this.#card(tasks)]);
    show(this.element, tasks !== undefined);
    if (tasks !== undefined) announce('A plan waits for your approval');
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
        show(problem, true);
        say(problem, words(error));
      }
    };
    const sendComment = () => {
      const text = comment.value.trim();
      if (text === '') comment.focus();
      else void give({ answer: 'comment', comment: text });
    };
    const buttons = [
      button('Run this plan', () => void give({ answer: 'run' }), { class: 'primary' }),
      button('Send comment', sendComment),
      button('Stop', () => void give({ answer: 'stop' }), { class: 'danger' }),
    ];
    const many = tasks.length === 1 ? '1 task' : `${tasks.length} tasks`;
    return h(
      'article',
      { class: 'question' },
      h(
        'div',
        { class: 'question-body' },
        h('p', { class: 'question-head' }, h('b', {}, 'The plan'), ` has ${many}. Nothing runs until you say so.`),
        h('ul', { class: 'plan-tasks' }, ...tasks.map(taskItem)),
        comment,
      ),
      h('div', { class: 'answers' }, ...buttons),
      problem,
    );
  }
}

function taskItem({ id, title, files, dependsOn, mode, prompt }: PlannedTask): HTMLElement {
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
