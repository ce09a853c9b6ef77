// The few ways in which this page makes and changes elements. Text is only ever set as text, and attributes by
// name from this program: nothing that a model, a tool or a file says is read as markup anywhere.

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
  for (const [key, value] of Object.entries(is)) mark(element, key, value);
  for (const [type, listener] of Object.entries(on)) element.addEventListener(type, listener as EventListener);
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** Sets a text only where it is another one: what is the same costs nothing to lay out. */
export function say(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element: HTMLElement, name: string, value: string | number | boolean): void {
  if (value === false) return element.removeAttribute(name);
  const text = value === true ? '' : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

export function show(element: HTMLElement, isShown: boolean): void {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/** What is there becomes what should be, without touching what is right already. */
export function fill(parent: HTMLElement, children: readonly HTMLElement[]): void {
  children.forEach((child, at) => {
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
  });
  while (parent.children.length > children.length) parent.lastElementChild?.remove();
}

export function button(label: string, press: () => void, props: Props = {}): HTMLButtonElement {
  const { on = {}, is = {}, ...rest } = props;
  return h('button', { ...rest, on: { ...on, click: press }, is: { type: 'button', ...is } }, label);
}

/** A state as a mark and a word: never by its colour alone. */
export function stateMark(state: string): HTMLElement {
  return h('i', { class: 'mark', is: { 'data-state': state, 'aria-hidden': 'true' } });
}

/** Tells those who listen instead of looking. */
export function announce(text: string): void {
  const region = document.getElementById('announcements');
  if (region !== null) region.textContent = text;
}
