// A button that copies a text as it was said, without what the page adds to it.

import { announceInDom, domButton, markDomElement, setDomText } from '../dom.ts';

const SHOWN_MS = 1_500;

/** `what`: such as "the answer", for those who listen; `label`: to tell two buttons apart. */
export function copyButton(what: string, text: () => string, label = 'Copy'): HTMLButtonElement {
  const press = domButton(label, () => void copy(), { class: 'copy', is: { 'aria-label': `Copy ${what}` } });
  const copy = async () => {
    const isCopied = await copied(text());
    setDomText(press, isCopied ? 'Copied' : 'Not copied');
    announceInDom(isCopied ? `Copied ${what}` : 'The browser refused to copy');
    markDomElement(press, 'data-state', isCopied ? 'done' : 'failed');
    setTimeout(() => {
      setDomText(press, label);
      markDomElement(press, 'data-state', false);
    }, SHOWN_MS);
  };
  return press;
}

/** Without https, browsers offer the clipboard only on this machine. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
