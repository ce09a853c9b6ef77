// Forms for a new run and a new session. The server's objections to a value are shown at its field.

import { DroverProblem } from '@drover/client/problem';
import type { NewRun, ServedModel, ServerInfo } from '@drover/client/wire';
import { pageCount } from '../../words.ts';
import { type PageApp, type Screen, pageErrorWords } from '../app.ts';
import { h, markDomElement, setDomText, showDomElement } from '../dom.ts';

type Field = {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly kind?: 'text' | 'long' | 'number';
  readonly width?: 'quarter' | 'half' | 'wide';
  readonly choices?: readonly string[];
  readonly isNeeded?: true;
};

const RUN: readonly Field[] = [
  {
    name: 'goal',
    label: 'Goal',
    kind: 'long',
    width: 'wide',
    isNeeded: true,
    hint: 'What should be true when it is done.',
  },
  {
    name: 'gates',
    label: 'Gates',
    kind: 'long',
    width: 'wide',
    hint: 'Commands that must pass on the merged result, one a line.',
  },
  { name: 'workers', label: 'Workers', kind: 'number' },
  { name: 'budget', label: 'Budget', hint: '5usd or 200ktok' },
  { name: 'timeout', label: 'Time', hint: '30m' },
  { name: 'deliver', label: 'Deliver as', choices: ['branch', 'merge', 'patch'] },
  { name: 'model', label: 'Model', width: 'half', hint: 'Choose one, or type provider/name' },
  { name: 'cwd', label: 'Folder', width: 'half', hint: 'A repository inside the served folder' },
];

const SESSION: readonly Field[] = [
  { name: 'content', label: 'First message', kind: 'long', width: 'wide', isNeeded: true },
  { name: 'model', label: 'Model', width: 'half', hint: 'Choose one, or type provider/name' },
  { name: 'cwd', label: 'Folder', width: 'half', hint: 'Inside the served folder' },
];

export function newRunScreen(app: PageApp): Screen {
  return newWorkFormScreen({ app, title: 'New run', verb: 'Start the run' }, RUN, async (values) => {
    const { id } = await app.client.startRun(newRunOfScreen(values));
    app.refresh();
    app.go(`#/runs/${id}`);
  });
}

export function newSessionScreen(app: PageApp): Screen {
  const heading = { app, title: 'New session', verb: 'Start the session' };
  return newWorkFormScreen(heading, SESSION, async ({ content = '', ...rest }) => {
    const { id } = await app.client.createSession(givenOnScreen(rest));
    const response = await app.client.openExecution(id, { content });
    await response.body?.cancel(); // the session's own stream tells it all
    app.refresh();
    app.go(`#/sessions/${id}`);
  });
}

function newRunOfScreen({ goal = '', gates = '', workers = '', ...rest }: Values): NewRun {
  const commands = gates.split('\n').map((line) => line.trim());
  const kept = commands.filter((command) => command !== '');
  return {
    ...(givenOnScreen(rest) as Omit<NewRun, 'goal'>),
    goal,
    approve: true,
    ...(kept.length > 0 && { gates: kept }),
    ...(workers !== '' && { workers: Number(workers) }),
  };
}

type Values = Readonly<Record<string, string>>;

function givenOnScreen(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
}

type Heading = { readonly app: PageApp; readonly title: string; readonly verb: string };

function newWorkFormScreen(
  { app, title, verb }: Heading,
  fields: readonly Field[],
  submit: (values: Values) => Promise<void>,
): Screen {
  const problem = h('p', { class: 'problem', is: { role: 'alert', hidden: true } });
  const press = h('button', { class: 'primary', is: { type: 'submit' } }, verb);
  const rows = fields.map((field) => fieldRowOfScreen(field));
  app.server().then(
    (info) => suggest(rows, info),
    () => undefined, // the page says so, and the form works without
  );
  const send = async () => {
    press.disabled = true;
    showDomElement(problem, false);
    for (const row of rows) row.complain('');
    try {
      await submit(Object.fromEntries(rows.map((row) => [row.name, row.value()])));
    } catch (error) {
      const errors = error instanceof DroverProblem ? error.errors : [];
      for (const { path, message } of errors) rows.find(({ name }) => path.includes(name))?.complain(message);
      showDomElement(problem, true);
      setDomText(problem, pageErrorWords(error));
    } finally {
      press.disabled = false;
    }
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void send();
  };
  const form = h(
    'form',
    { class: 'form', on: { submit: onSubmit } },
    ...rows.map(({ element }) => element),
    problem,
    h('div', { class: 'form-end' }, press),
  );
  const element = h('div', { class: 'screen form-screen' }, h('header', { class: 'head' }, h('h1', {}, title)), form);
  return { element, title: () => title, stop: () => undefined };
}

/** Names the served folder and the default model where a field is left empty, and lists the models. */
function suggest(rows: readonly FieldRow[], { root, model = '', models }: ServerInfo): void {
  for (const { name, input } of rows) {
    if (name === 'cwd') markDomElement(input, 'placeholder', root);
    if (name !== 'model') continue;
    markDomElement(input, 'placeholder', model);
    markDomElement(input, 'list', 'models');
    input.after(h('datalist', { is: { id: 'models' } }, ...models.map(modelOption)));
  }
}

function modelOption({ model, price, contextTokens }: ServedModel): HTMLElement {
  const cost = price === undefined ? 'price unknown' : `$${price.input} in, $${price.output} out per million tokens`;
  return h('option', { is: { value: model, label: `${model} · ${cost} · ${pageCount(contextTokens)} context` } });
}

type FieldRow = {
  readonly name: string;
  readonly input: HTMLElement;
  readonly element: HTMLElement;
  readonly value: () => string;
  readonly complain: (message: string) => void;
};

function fieldRowOfScreen({ name, label, hint, kind = 'text', width = 'quarter', choices, isNeeded }: Field): FieldRow {
  const id = `field-${name}`;
  const is = { id, name, 'aria-describedby': `${id}-hint`, ...(isNeeded && { required: true }) };
  const input =
    choices !== undefined
      ? h('select', { is }, ...choices.map((choice) => h('option', { is: { value: choice } }, choice)))
      : kind === 'long'
        ? h('textarea', { is: { ...is, rows: name === 'gates' ? 2 : 4 } })
        : h('input', { is: { ...is, type: kind, autocomplete: 'off', ...(kind === 'number' && { min: 0, max: 64 }) } });
  const help = h('small', { is: { id: `${id}-hint` } }, hint ?? '');
  const complaint = h('small', { class: 'complaint' });
  return {
    name,
    input,
    element: h('div', { class: `field ${width}` }, h('label', { is: { for: id } }, label), input, help, complaint),
    value: () => input.value.trim(),
    complain: (message) => {
      setDomText(complaint, message);
      input.setAttribute('aria-invalid', message === '' ? 'false' : 'true');
    },
  };
}
