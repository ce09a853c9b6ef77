// The few ways in which this page makes and changes elements, and the only place where it does.
//
// Nothing that a model, a tool or a file says is read as markup: text is only ever set as text, made visible
// where it hides something, and an attribute has a name from this program. Where it leads somewhere, its value is
// from this program too, or an address that safeLinkAddress let through.

import { visiblePageText } from '../visible.ts';

export type Child = Node | string | undefined;

export type Props = {
  readonly class?: string;
  readonly on?: { readonly [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void };
  /** Attributes; true is present, false absent. */
  readonly is?: Readonly<Record<string, string | number | boolean>>;
};

/** An element with all that it needs. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  { class: name, on = {}, is = {} }: Props = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  if (name !== undefined) element.className = name;
  for (const [key, value] of Object.entries(is)) markDomElement(element, key, value);
  for (const [type, listener] of Object.entries(on)) element.addEventListener(type, listener as EventListener);
  for (const child of children) if (child !== undefined) element.append(asDomNode(child));
  return element;
}

function asDomNode(child: Node | string): Node {
  return typeof child === 'string' ? document.createTextNode(visiblePageText(child)) : child;
}

/** Sets a text only where it is another one: what is the same costs nothing to lay out. */
export function setDomText(element: HTMLElement, text: string): void {
  const seen = visiblePageText(text);
  if (element.textContent !== seen) element.textContent = seen;
}

export function markDomElement(element: HTMLElement, name: string, value: string | number | boolean): void {
  if (value === false) return element.removeAttribute(name);
  const text = value === true ? '' : visiblePageText(String(value));
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

export function showDomElement(element: HTMLElement, isShown: boolean): void {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/** Updates the children, and leaves those that are right untouched. */
export function fillDomElement(parent: HTMLElement, children: readonly HTMLElement[]): void {
  children.forEach((child, at) => {
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild?.remove();
}

/** A text that mostly grows at its end: what is there already is not laid out again. */
export class GrowingText {
  readonly node = document.createTextNode('');

  set(text: string): void {
    const { data } = this.node;
    const seen = visiblePageText(text);
    if (seen === data) return;
    if (seen.length > data.length && seen.startsWith(data)) this.node.appendData(seen.slice(data.length));
    else this.node.data = seen;
  }
}

export function domButton(label: string, press: () => void, props: Props = {}): HTMLButtonElement {
  const { on = {}, is = {}, ...rest } = props;
  return h('button', { ...rest, on: { ...on, click: press }, is: { type: 'button', ...is } }, label);
}

/** A state as a coloured mark; a word always stands beside it. */
export function domStateMark(state: string): HTMLElement {
  return h('i', { class: 'mark', is: { 'data-state': state, 'aria-hidden': 'true' } });
}

/** Tells those who listen instead of looking. */
export function announceInDom(text: string): void {
  const region = document.getElementById('announcements');
  if (region !== null) setDomText(region, text);
}
