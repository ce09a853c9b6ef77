// A page whose visitor and whose paint are tools of an agent: it can ask the one and use the other.
//
// Nothing but the client is used. What the model says is shown as text, and never as markup.

import { DroverClient } from '/client/client.ts';

const $ = (id) => document.getElementById(id);

const tools = {
  ask_visitor: {
    description: 'Ask whoever looks at the page a question.',
    schema: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] },
    run: ({ question }, signal) => ask(String(question), signal),
  },
  show_colour: {
    description: 'Paint the field on the page in a CSS colour.',
    schema: { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] },
    run: ({ colour }) => {
      if (!CSS.supports('color', colour)) throw new Error(`${colour} is no colour`);
      $('swatch').style.backgroundColor = colour;
      return `the field is ${colour} now`;
    },
  },
};

async function ask(question, signal) {
  $('asked').textContent = question;
  $('question').hidden = false;
  $('reply').focus();
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      $('question').onsubmit = (event) => {
        event.preventDefault();
        resolve($('reply').value);
      };
    });
  } finally {
    $('question').hidden = true;
  }
}

$('say').addEventListener('submit', (event) => {
  event.preventDefault();
  void say();
});

async function say() {
  const client = new DroverClient({ baseUrl: location.origin, token: $('token').value.trim() });
  $('answer').textContent = '';
  $('events').replaceChildren();
  try {
    const session = await client.session({ tools });
    const turn = await session.execute($('message').value);
    for await (const { type, delta } of turn) {
      if (type === 'text_delta') $('answer').textContent += delta;
      else $('events').append(Object.assign(document.createElement('li'), { textContent: type }));
    }
    const { outcome, text } = await turn.result();
    $('answer').textContent = text;
    $('answer').dataset.outcome = outcome;
  } catch (error) {
    $('answer').textContent = error.message;
  }
}
