// Questions that wait for the user: shown in the title of the tab and its icon, and by notifications if the user asked.
//
// The browser's permission is asked for only when the user presses the button. A notification names the run or session,
// and holds nothing that a model wrote.

import { visiblePageText } from '../visible.ts';
import { announceInDom, domButton, markDomElement, setDomText, showDomElement } from './dom.ts';
import type { SidebarLists } from './screens/sidebar.ts';

const KEY = 'drover.notify';
const ICON = '/page/icon.svg';
const ICON_ASKING = '/page/icon-asking.svg';

export class Attention {
  readonly press = domButton('Notify me', () => void this.#toggle(), { class: 'plain' });
  #told: ReadonlyMap<string, number> | undefined; // what waited at the last look

  constructor() {
    this.#label();
  }

  /** Shows how much waits, and notifies of what is new. Returns the title of the tab. */
  update(kept: readonly SidebarLists[], title: string): string {
    const waiting = kept.filter((each) => each.waiting > 0);
    const count = waiting.reduce((sum, each) => sum + each.waiting, 0);
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
    if (icon !== null) markDomElement(icon, 'href', count > 0 ? ICON_ASKING : ICON);
    const before = this.#told;
    this.#told = new Map(waiting.map((each) => [each.id, each.waiting]));
    if (before !== undefined)
      for (const each of waiting) if (each.waiting > (before.get(each.id) ?? 0)) this.#notify(each);
    const shown = title === '' ? 'drover' : `${visiblePageText(title)} – drover`;
    return count > 0 ? `(${count}) ${shown}` : shown;
  }

  #notify({ id, kind, cwd, title }: SidebarLists): void {
    if (!isOn() || document.hasFocus()) return;
    const notification = new Notification(visiblePageText(title === '' ? 'drover' : title), {
      body: `It waits for your answer, in ${visiblePageText(cwd)}.`,
      icon: ICON_ASKING,
      tag: id,
    });
    notification.addEventListener('click', () => {
      window.focus();
      location.hash = `#/${kind}s/${id}`;
      notification.close();
    });
  }

  async #toggle(): Promise<void> {
    const isWanted = !isOn();
    if (isWanted && Notification.permission !== 'granted') await Notification.requestPermission();
    localStorage.setItem(KEY, isWanted ? 'on' : 'off');
    this.#label();
    announceInDom(isOn() ? 'Notifications are on' : 'Notifications are off');
  }

  #label(): void {
    const isOffered = 'Notification' in globalThis;
    showDomElement(this.press, isOffered);
    if (!isOffered) return;
    const isRefused = Notification.permission === 'denied';
    this.press.disabled = isRefused;
    markDomElement(this.press, 'aria-pressed', isOn() ? 'true' : 'false');
    markDomElement(
      this.press,
      'title',
      isRefused ? 'This browser blocks notifications of this page' : 'When a question waits',
    );
    setDomText(this.press, isRefused ? 'Notifications blocked' : isOn() ? 'Notifying' : 'Notify me');
  }
}

function isOn(): boolean {
  return localStorage.getItem(KEY) === 'on' && Notification.permission === 'granted';
}
