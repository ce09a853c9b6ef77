// A question that the page itself asks before it does something that can't be undone.

import { domButton, h } from '../dom.ts';

/** True if the user confirms; Escape is no. The page behind stays live. */
export function askToConfirmPart(
  question: string,
  { yes, no }: { readonly yes: string; readonly no: string },
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const close = (answer: boolean) => {
    resolve(answer);
    dialog.close();
  };
  const buttons = [domButton(no, () => close(false)), domButton(yes, () => close(true), { class: 'danger' })];
  const dialog = h('dialog', { class: 'confirm' }, h('p', {}, question), h('div', { class: 'answers' }, ...buttons));
  dialog.addEventListener('close', () => {
    resolve(false);
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  return promise;
}
