// A strict XML reader, and a check against the common JUnit schema: elements, attributes and their types.

const ELEMENTS: Readonly<Record<string, ElementRule>> = {
  testsuites: {
    children: ['testsuite'],
    required: [],
    optional: ['name', 'tests', 'failures', 'errors', 'skipped', 'time'],
  },
  testsuite: {
    children: ['properties', 'testcase', 'system-out', 'system-err'],
    required: ['name', 'tests'],
    optional: ['failures', 'errors', 'skipped', 'time', 'timestamp', 'hostname', 'id', 'package', 'disabled'],
  },
  testcase: {
    children: ['skipped', 'error', 'failure', 'system-out', 'system-err'],
    required: ['name', 'classname'],
    optional: ['time', 'assertions', 'status'],
  },
  failure: { children: 'text', required: [], optional: ['type', 'message'] },
  error: { children: 'text', required: [], optional: ['type', 'message'] },
  skipped: { children: 'text', required: [], optional: ['message'] },
  'system-out': { children: 'text', required: [], optional: [] },
};

type ElementRule = {
  readonly children: readonly string[] | 'text';
  readonly required: readonly string[];
  readonly optional: readonly string[];
};

const COUNTS = new Set(['tests', 'failures', 'errors', 'skipped']);

export type Element = {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly Element[];
  readonly text: string;
};

/** Throws if the text is not well-formed or does not match the schema. */
export function readJunit(xml: string): Element {
  const root = parse(xml);
  if (root.name !== 'testsuites') throw new Error(`the root is ${root.name}`);
  check(root);
  return root;
}

function check({ name, attributes, children, text }: Element): void {
  const rule = ELEMENTS[name];
  if (rule === undefined) throw new Error(`there is no element ${name}`);
  for (const each of rule.required) if (attributes[each] === undefined) throw new Error(`${name} needs ${each}`);
  for (const [each, value] of Object.entries(attributes)) {
    if (![...rule.required, ...rule.optional].includes(each)) throw new Error(`${name} has no ${each}`);
    if (COUNTS.has(each) && !/^\d+$/.test(value)) throw new Error(`${each} is no count: ${value}`);
    if (each === 'time' && !/^\d+(\.\d+)?$/.test(value)) throw new Error(`${each} is no time: ${value}`);
    if (each === 'timestamp' && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(value))
      throw new Error(`no timestamp: ${value}`);
  }
  for (const child of children) {
    if (rule.children === 'text' || !rule.children.includes(child.name)) throw new Error(`${child.name} in ${name}`);
    check(child);
  }
  if (rule.children !== 'text' && text.trim() !== '') throw new Error(`text in ${name}: ${text}`);
}

function parse(xml: string): Element {
  // eslint-disable-next-line no-control-regex -- these are what XML can't hold.
  const bad = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u.exec(xml);
  if (bad !== null) throw new Error(`a character that XML can't hold: ${JSON.stringify(bad[0])}`);
  const [head = ''] = /^<\?xml version="1\.0" encoding="UTF-8"\?>\n/.exec(xml) ?? [];
  if (head === '') throw new Error('no XML declaration');
  const reader = new Reader(xml.slice(head.length));
  const root = reader.element();
  if (reader.rest.trim() !== '') throw new Error(`something is behind the root: ${reader.rest}`);
  return root;
}

class Reader {
  rest: string;

  constructor(text: string) {
    this.rest = text;
  }

  element(): Element {
    const name = this.#take(/^\s*<([A-Za-z][\w-]*)/)[1] ?? '';
    const attributes: Record<string, string> = {};
    for (
      let found = this.#try(/^\s+([\w-]+)="([^"<]*)"/);
      found !== undefined;
      found = this.#try(/^\s+([\w-]+)="([^"<]*)"/)
    ) {
      if (attributes[found[1] ?? ''] !== undefined) throw new Error(`${found[1]} twice`);
      attributes[found[1] ?? ''] = plain(found[2] ?? '');
    }
    if (this.#try(/^\s*\/>/) !== undefined) return { name, attributes, children: [], text: '' };
    this.#take(/^\s*>/);
    const children: Element[] = [];
    let text = '';
    for (;;) {
      const said = this.#take(/^[^<]*/)[0];
      if (said.includes(']]>')) throw new Error(']]> in text');
      text += plain(said);
      if (this.#try(/^<\/([\w-]+)\s*>/)?.[1] === name) return { name, attributes, children, text };
      children.push(this.element());
    }
  }

  #try(pattern: RegExp): RegExpExecArray | undefined {
    const found = pattern.exec(this.rest);
    if (found === null) return undefined;
    this.rest = this.rest.slice(found[0].length);
    return found;
  }

  #take(pattern: RegExp): RegExpExecArray {
    const found = this.#try(pattern);
    if (found === undefined) throw new Error(`not well-formed at: ${this.rest.slice(0, 80)}`);
    return found;
  }
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function plain(text: string): string {
  return text.replaceAll(/&(\w*);?/g, (whole, name: string) => {
    const char = whole.endsWith(';') ? NAMED[name] : undefined;
    if (char === undefined) throw new Error(`no entity: ${whole}`);
    return char;
  });
}
