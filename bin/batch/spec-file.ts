// A batch spec in a file: YAML that a person wrote, read into a BatchSpec with the place of every key.
//
// All that can be wrong with it by itself is told here, with file, line and column. What only shows next to
// a repository is told later, by the keys' places, which are kept for that.

import { createHash } from 'node:crypto';
import { basename, relative, resolve } from 'node:path';
import type { Node } from 'yaml';
import { globProblem } from '@drover/coordinator/batch/items/select';
import {
  type BatchLimits,
  type BatchSpec,
  type Grouping,
  GROUPINGS,
  type Problem,
  type Select,
  type StopWhenFailed,
  type TaskTemplate,
} from '@drover/coordinator/batch/items/spec';
import { namesIn, quotedIn, TEMPLATE_NAMES, variableIn } from '@drover/coordinator/batch/template';
import { UsageError } from '@drover/core/errors';
import { requireOwnFile } from '@drover/core/files/own-file';
import type { Delivery } from '@drover/protocol/run';
import { parseBudget, parseDuration } from '../quantities.ts';
import { suggestion } from '../suggestion.ts';
import { type DocumentReader, readDocument } from '../yaml-document.ts';

const WORKERS_MAX = 64;
const GROUP_FILES_MAX = 1_000;
const GROUP_FILES_DEFAULT = 50;
const FAILURES_MAX = 100_000;
const DELIVERIES: readonly Delivery[] = ['branch', 'merge', 'patch'];

export type SpecFile = {
  readonly spec: BatchSpec;
  /** As the user would name it. */
  readonly file: string;
  /** Of the bytes that were read. */
  readonly sha256: string;
  /** Where a key stands, or else the key it belongs to. */
  readonly place: (key: string) => string;
};

export async function readSpec(path: string, cwd: string): Promise<SpecFile> {
  const file = relative(cwd, resolve(cwd, path)) || path;
  const bytes = await requireOwnFile(
    { path: resolve(cwd, path) },
    ({ kind, problem, fix }) => `${file} ${problem}; ${kind === 'missing' ? 'name a batch spec' : fix}`,
  );
  const text = bytes.toString('utf8');
  const places = new Map<string, string>();
  const spec = await readDocument(text, file, (reader) => new SpecReader(reader, places, file).read());
  const place = (key: string): string => {
    for (let each = key; each !== ''; each = each.slice(0, Math.max(0, each.lastIndexOf('.')))) {
      const found = places.get(each);
      if (found !== undefined) return found;
    }
    return file;
  };
  return { spec, file, sha256: createHash('sha256').update(bytes).digest('hex'), place };
}

/** Throws where there are any. */
export function refuse(problems: readonly Problem[], { place }: SpecFile): void {
  if (problems.length === 0) return;
  const line = ({ key, message, near }: Problem) =>
    `${place(key)}: ${message}${near === undefined ? '' : suggestion(near.word, near.known)}`;
  throw new UsageError(problems.map(line).join('\n'));
}

type Root = {
  version: number;
  name: string;
  select: Select;
  group: Grouping;
  task: TaskTemplate;
  gates: readonly string[];
  setup: readonly string[];
  limits: BatchLimits;
  vars: Readonly<Record<string, string>>;
  workers: number;
  deliver: Delivery;
};

class SpecReader {
  readonly #reader: DocumentReader;
  readonly #places: Map<string, string>;
  readonly #file: string;
  readonly #templates: { readonly node: Node; readonly text: string; readonly isCommand: boolean }[] = [];
  #isByCommand = false;

  constructor(reader: DocumentReader, places: Map<string, string>, file: string) {
    this.#reader = reader;
    this.#places = places;
    this.#file = file;
  }

  read(): BatchSpec {
    const reader = this.#reader;
    const { root } = reader;
    if (root === undefined) return reader.fail('the spec is empty; it needs version, select and task') ?? NOTHING;
    const read = reader.record<Root>(root, 'a batch spec', {
      version: (node) => reader.wholeNumber(node, 1, 1),
      name: (node) => reader.text(node),
      select: (node) => this.#select(node),
      group: (node) => this.#group(node),
      task: (node) => this.#task(node),
      gates: (node) => this.#texts(node),
      setup: (node) => this.#texts(node),
      limits: (node) => this.#limits(node),
      vars: (node) => this.#vars(node),
      workers: (node) => reader.wholeNumber(node, 0, WORKERS_MAX),
      deliver: (node) => reader.oneOf(node, DELIVERIES),
    });
    const { version, name = nameFrom(this.#file), select, group, task, limits = {}, vars = {} } = read;
    for (const [key, value] of Object.entries({ version, select, task }))
      if (value === undefined) this.#missing(root, key);
    this.#checkTemplates(vars);
    return {
      name,
      gates: read.gates ?? [],
      setup: read.setup ?? [],
      limits,
      vars,
      select: select ?? NOTHING.select,
      group: group ?? NOTHING.group,
      task: task ?? NOTHING.task,
      ...(read.workers !== undefined && { workers: read.workers }),
      ...(read.deliver !== undefined && { deliver: read.deliver }),
    };
  }

  /** Only where nothing was said of it yet: what is there and wrong has been told. */
  #missing(root: Node, key: string): void {
    if (this.#reader.document.has(key)) return;
    this.#reader.mistake(root, `a batch spec needs ${key}${key === 'version' ? ': 1' : ''}`);
  }

  #select(node: Node): Select | undefined {
    const reader = this.#reader;
    this.#places.set('select', reader.place(node));
    type Keys = { files: Pick<Select, 'files' | 'list'>; exclude: readonly string[]; contains: RegExp } & Record<
      'diff' | 'command' | 'repos',
      string
    >;
    const {
      files,
      exclude = [],
      contains,
      diff,
      command,
      repos,
    } = reader.record<Keys>(node, 'select', {
      files: (entry) => this.#files(entry),
      exclude: (entry) => this.#globs(entry, 'select.exclude'),
      contains: (entry) => reader.parsed(entry, parsePattern),
      diff: (entry) => this.#placed('select.diff', entry),
      command: (entry) => this.#placed('select.command', entry),
      repos: (entry) => this.#placed('select.repos', entry),
    });
    this.#isByCommand = command !== undefined;
    if (files?.list !== undefined && command !== undefined)
      return reader.mistake(node, 'a list of files and a command contradict each other; give one of them');
    if (
      files === undefined &&
      diff === undefined &&
      command === undefined &&
      !this.#reader.document.hasIn(['select', 'files'])
    )
      return reader.mistake(node, 'select needs files, diff or command; files: ["**"] takes all there are');
    return {
      ...files,
      exclude,
      ...(contains !== undefined && { contains }),
      ...(diff !== undefined && { diff }),
      ...(command !== undefined && { command }),
      ...(repos !== undefined && { repos }),
    };
  }

  #files(node: Node): Pick<Select, 'files' | 'list'> | undefined {
    this.#places.set('select.files', this.#reader.place(node));
    if (!this.#reader.isList(node)) {
      const list = this.#reader.text(node);
      return list === undefined ? undefined : { list };
    }
    const files = this.#globs(node, 'select.files');
    // Where there are some, what is wrong with them has been told.
    if (files === undefined || this.#places.has('select.files.0')) return files && { files };
    return this.#reader.mistake(node, 'files is empty; name at least one glob');
  }

  #globs(node: Node, key: string): readonly string[] | undefined {
    let at = 0;
    return this.#reader.list(node, (entry) => {
      this.#places.set(`${key}.${at++}`, this.#reader.place(entry));
      const glob = this.#reader.text(entry);
      const problem = glob === undefined ? undefined : globProblem(glob);
      return problem === undefined ? glob : this.#reader.mistake(entry, problem);
    });
  }

  #group(node: Node): Grouping | undefined {
    const reader = this.#reader;
    if (!reader.isMap(node)) {
      const by = reader.oneOf(node, GROUPINGS);
      return by && { by, max: GROUP_FILES_DEFAULT };
    }
    const { by = 'file', max = GROUP_FILES_DEFAULT } = reader.record<Grouping>(node, 'group', {
      by: (entry) => reader.oneOf(entry, GROUPINGS),
      max: (entry) => reader.wholeNumber(entry, 1, GROUP_FILES_MAX),
    });
    return { by, max };
  }

  #task(node: Node): TaskTemplate | undefined {
    const reader = this.#reader;
    this.#places.set('task', reader.place(node));
    type Keys = { id: string; title: string; prompt: string; gate: readonly string[] };
    const {
      id,
      title,
      prompt,
      gate = [],
    } = reader.record<Keys>(node, 'task', {
      id: (entry) => this.#template('task.id', entry),
      title: (entry) => this.#template('task.title', entry),
      prompt: (entry) => this.#template('task.prompt', entry),
      gate: (entry) => this.#gates(entry),
    });
    if (prompt === undefined) {
      if (!reader.document.hasIn(['task', 'prompt'])) reader.mistake(node, 'a task needs a prompt');
      return undefined;
    }
    return { prompt, gates: gate, ...(id !== undefined && { id }), ...(title !== undefined && { title }) };
  }

  #gates(node: Node): readonly string[] | undefined {
    let at = 0;
    const gate = (entry: Node) => this.#template(`task.gate.${at++}`, entry, true);
    if (this.#reader.isList(node)) return this.#reader.list(node, gate);
    const only = gate(node);
    return only === undefined ? undefined : [only];
  }

  #template(key: string, node: Node, isCommand = false): string | undefined {
    const text = this.#placed(key, node);
    if (text !== undefined) this.#templates.push({ node, text, isCommand });
    return text;
  }

  #placed(key: string, node: Node): string | undefined {
    this.#places.set(key, this.#reader.place(node));
    return this.#reader.text(node);
  }

  #texts(node: Node): readonly string[] | undefined {
    return this.#reader.list(node, (entry) => this.#reader.text(entry));
  }

  #vars(node: Node): Readonly<Record<string, string>> | undefined {
    const read = this.#reader.map(node, (entry) => this.#reader.text(entry));
    return read && Object.fromEntries(read);
  }

  #limits(node: Node): BatchLimits {
    const reader = this.#reader;
    type Keys = {
      budget: BatchLimits['budget'];
      perTask: BatchLimits['perTask'];
      timeout: number;
      perTaskTimeout: number;
      stopWhenFailed: StopWhenFailed;
    };
    const { budget, perTask, timeout, perTaskTimeout, stopWhenFailed } = reader.record<Keys>(node, 'limits', {
      budget: (entry) => reader.parsed(entry, parseBudget),
      perTask: (entry) => reader.parsed(entry, parseBudget),
      timeout: (entry) => reader.parsed(entry, parseDuration),
      perTaskTimeout: (entry) => reader.parsed(entry, parseDuration),
      stopWhenFailed: (entry) => this.#stopWhenFailed(entry),
    });
    return {
      ...(budget !== undefined && { budget }),
      ...(perTask !== undefined && { perTask }),
      ...(timeout !== undefined && { timeoutMs: timeout }),
      ...(perTaskTimeout !== undefined && { perTaskTimeoutMs: perTaskTimeout }),
      ...(stopWhenFailed !== undefined && { stopWhenFailed }),
    };
  }

  #stopWhenFailed(node: Node): StopWhenFailed | undefined {
    const text = String(node);
    if (/^\d+$/.test(text)) {
      const count = this.#reader.wholeNumber(node, 1, FAILURES_MAX);
      return count === undefined ? undefined : { count };
    }
    return this.#reader.parsed(node, parsePercent);
  }

  #checkTemplates(vars: Readonly<Record<string, string>>): void {
    const known = [...TEMPLATE_NAMES, ...Object.keys(vars).map((name) => `vars.${name}`)];
    for (const { node, text, isCommand } of this.#templates) {
      for (const { name, whole } of isCommand ? quotedIn(text) : [])
        this.#reader.mistakeIn(
          node,
          whole,
          `{{ ${name} }} stands in quotes; leave them out: it is quoted for the shell`,
        );
      for (const { name, whole, isName } of namesIn(text)) {
        const variable = variableIn(name);
        // What a command prints may name variables of its own: that is looked at when it has.
        if (isName && (known.includes(name) || (variable !== undefined && this.#isByCommand))) continue;
        const near = suggestion(name, known) || `; known are ${known.join(', ')}`;
        this.#reader.mistakeIn(node, whole, `there is no {{ ${name} }}${near}; braces that shall stay are \\{{`);
      }
    }
  }
}

const NOTHING: BatchSpec = {
  name: '',
  gates: [],
  setup: [],
  limits: {},
  vars: {},
  select: { exclude: [] },
  group: { by: 'file', max: GROUP_FILES_DEFAULT },
  task: { prompt: '', gates: [] },
};

function nameFrom(file: string): string {
  return basename(file).replace(/\.ya?ml$/, '');
}

function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text, 'm');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(
      `this is no regular expression: ${error.message.replace(/^Invalid regular expression: /, '')}`,
    );
  }
}

function parsePercent(text: string): StopWhenFailed {
  const [, digits] = /^(\d{1,3}(?:\.\d+)?)\s*%$/.exec(text) ?? [];
  const percent = Number(digits);
  if (!(percent > 0 && percent <= 100))
    throw new UsageError(`'${text}' is neither a share nor a count; write it like 30% or 5`);
  return { percent };
}
