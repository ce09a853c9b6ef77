// run-lines: the view of a run without a terminal: one line for each change of a task's state, and the report at the
// end.
//
//   09:30:04  billing     ▸ shell: pnpm test billing
//   09:30:09  billing     ✓ landed  2 files · 10.9k tokens · $0.0125 · 5.2 s
//
// The view only appends. It leaves out thinking, which happens between all other lines. In GitHub Actions the calls of
// an attempt are in a group that can be unfolded, and no text of a model or a tool is taken for a command of the
// runner.

import { refusedHostLine } from './lines.ts';
import { RunState, type TaskProgress, type TaskState } from '@drover/coordinator/view/state';
import { type DeniedCall, DeniedCalls } from '@drover/core/permission/denied-calls';
import { movedEventWords } from '@drover/protocol/events';
import type { Shown } from '@drover/core/bus';
import { type Io, type Output, print } from '../io.ts';
import { clockText, dollarsText, durationText, shortCountText, totalTokens } from './text/figures.ts';
import { type ReportTime, runReport } from './report.ts';
import { looksOf, taskTextStyle, type Style, textStyle } from './text/style.ts';
import { cleanText, terminalColumns, textForLog, inertText, textOnOneLine, widthOfText } from './text/terminal-text.ts';
import type { RunView } from './view.ts';

const NAME_COLUMNS_MAX = 24;
const GROUP_LINES_MAX = 500;
const OUTPUT_LINES_MAX = 12;
const FAILED: ReadonlySet<TaskState> = new Set(['failed', 'skipped', 'conflict', 'cancelled']);
const TIME_CHARS = '00:00:00'.length;
const DROVER = 'drover'; // who speaks where no task does
const COORDINATOR = 'coordinator';

export function runLinesView(output: Output, env: Io['env'], when?: ReportTime): RunView {
  const isGrouped = (env['GITHUB_ACTIONS'] ?? '') !== '';
  const log = { isGrouped, safe: (text: string) => textForLog(text, env), when };
  const lines = new RunLines(output, textStyle(output, env), log);
  return {
    show: (event) => print(output, lines.of(event)),
    recall: (event) => void lines.of(event),
    say: (text) => print(output, lines.words(text)),
    whileAsking: (ask) => ask(),
    close: async () => undefined,
  };
}

type Of<Type extends Shown['type']> = Extract<Shown, { readonly type: Type }>;
type Told = {
  readonly state: TaskState;
  readonly doing: string;
  /** Calls of this step that have a line: while several run, each end of one names another again. */
  readonly calls: ReadonlySet<string>;
};
const NO_CALLS: ReadonlySet<string> = new Set();
const UNTOLD: Told = { state: 'waiting', doing: '', calls: NO_CALLS };

type Mark = { readonly sign: string; readonly format: Parameters<Style>[0] };

/** A line: `word` and `figures` are drover's own, `text` is untrusted; `printed` is a cleaned line of an output. */
type Words = {
  readonly mark?: Mark;
  readonly word?: string;
  readonly text?: string;
  readonly figures?: string;
  readonly printed?: string;
};

const WARNING: Mark = { sign: '!', format: 'yellow' };

/** Features of the CI runner: it folds groups of lines, and takes some text for commands. */
type Log = {
  readonly isGrouped: boolean;
  readonly safe: (text: string) => string;
  readonly when: ReportTime | undefined; // of the report
};

/** A fold from events to text. */
class RunLines {
  readonly #output: Output;
  readonly #style: Style;
  readonly #log: Log;
  readonly #state = new RunState();
  readonly #denied = new DeniedCalls();
  readonly #told = new Map<string, Told>(); // by task
  readonly #groups = new Map<string, string[]>(); // by task: what is said when its attempt is over
  #nameColumns = COORDINATOR.length;
  #printed = ''; // the output of the last gate that failed

  constructor(output: Output, style: Style, log: Log) {
    this.#output = output;
    this.#style = style;
    this.#log = log;
  }

  of(event: Shown): string {
    this.#state.take(event);
    const denied = this.#denied.take(event);
    switch (event.type) {
      case 'run_start':
        return this.#line(event, { text: `${event.resumed ? 'goes on with' : 'begins'}: ${event.goal}` });
      case 'plan_ready':
        return this.#plan(event);
      case 'plan_comment':
        return this.#line(event, { text: `you said about the plan: ${event.comment}` });
      case 'tasks_reopened':
        return this.#line(event, { text: `retries ${event.tasks.map(({ id }) => id).join(', ')}` });
      case 'gate_start':
        return this.#line(event, { mark: looksOf.gate, text: runLinesGate(event, '') }) + this.#changes(event);
      case 'gate_end':
        return this.#gateEnd(event) + this.#changes(event);
      case 'task_end':
        return this.#changes(event) + this.#group(event);
      case 'attempt_moved':
        return this.#line(event, { mark: WARNING, text: movedEventWords(event) }) + this.#changes(event);
      case 'placement':
        return event.state === 'accepted'
          ? this.#line(event, { mark: looksOf.starting, text: `on ${event.host.name}` })
          : '';
      case 'permission_decision':
        return this.#decision(event) + this.#changes(event);
      case 'warning':
        return this.#line(event, { mark: WARNING, text: event.message });
      case 'network':
        return event.allowed ? '' : this.#line(event, { mark: WARNING, text: refusedHostLine(event) });
      case 'run_end':
        return this.#changes(event) + this.#report();
    }
    if (denied !== undefined) return this.#deny(event, denied) + this.#changes(event);
    return this.#changes(event);
  }

  /** Drover's own words. */
  words(text: string): string {
    return this.#inert(`${cleanText(text)}\n`);
  }

  #plan(event: Of<'plan_ready'>): string {
    const names = event.tasks.map(({ id }) => widthOfText(textOnOneLine(id, NAME_COLUMNS_MAX)));
    this.#nameColumns = Math.max(this.#nameColumns, ...names);
    const amount = `${event.tasks.length} ${event.tasks.length === 1 ? 'task' : 'tasks'}`;
    const whose = { coordinator: '', file: ' from a file', fallback: ': the goal as a whole' }[event.by];
    const lines = event.tasks.map(({ id: task, title }) =>
      this.#line({ ...event, task }, { mark: looksOf.waiting, text: title }),
    );
    return [this.#line(event, { text: `plan ${event.round}: ${amount}${whose}` }), ...lines].join('');
  }

  #gateEnd(event: Of<'gate_end'>): string {
    const verdict = event.passed ? (event.flaky ? ' passes at the second try' : ' passes') : ' fails';
    const mark = looksOf[event.passed ? 'landed' : 'gate_failed'];
    const figures = durationText(event.durationMs);
    const line = this.#line(event, { mark, text: runLinesGate(event, verdict), figures });
    if (event.passed || event.output === this.#printed) return line;
    this.#printed = event.output;
    return line + this.#outputLines(event, event.output);
  }

  /** The last lines of an output, each as a line of its own. */
  #outputLines(event: Shown, output: string): string {
    const lines = cleanText(output).trim().split('\n').slice(-OUTPUT_LINES_MAX);
    return lines
      .map((text) => (text === '' ? '' : this.#line(event, { printed: text.replaceAll('\t', '  ') })))
      .join('');
  }

  #decision(event: Of<'permission_decision'>): string {
    const { allowed, always, by, reason, summary } = event;
    const why = reason ?? (by === 'user' ? 'you said no' : 'nobody is there to ask');
    const text = allowed ? `allowed${always ? ' from now on' : ''}: ${summary}` : `not allowed: ${why}`;
    return this.#line(event, { mark: looksOf[allowed ? 'landed' : 'failed'], text });
  }

  #deny(event: Shown, { summary, why }: DeniedCall): string {
    return this.#line(event, { mark: looksOf.failed, text: `not allowed: ${summary}: ${why}` });
  }

  /** A line for each task of which there is something new to tell. */
  #changes(event: Shown): string {
    const task = event.task === undefined ? undefined : this.#state.tasks.get(event.task);
    if (task !== undefined) return this.#change(event, task);
    if (event.task === undefined && event.worker === 0) return this.#coordinate(event);
    // Only these change tasks that they don't belong to.
    if (event.type !== 'run_end' && event.type !== 'gate_start' && event.type !== 'gate_end') return '';
    return [...this.#state.tasks.values()].map((each) => this.#change(event, each)).join('');
  }

  #change(event: Shown, progress: TaskProgress): string {
    const { id: task, state, doing } = progress;
    const told = this.#told.get(task) ?? UNTOLD;
    if (told.state === state && told.doing === doing) return '';
    const isKnown = this.#note(task, told, { state, doing });
    if (isKnown) return '';
    // Gates report their tasks themselves; a merge is reported once.
    if (state === 'thinking' || state === 'gate' || (state === 'merging' && told.state === 'gate')) return '';
    const line =
      this.#line({ ...event, task }, this.#worded(progress)) + this.#restOfReason({ ...event, task }, progress);
    return state === 'running' && this.#log.isGrouped ? this.#keep(task, line) : line;
  }

  /** The output of a failed task. The output of a gate is printed with the gate. */
  #restOfReason(event: Shown, { state, reason = '' }: TaskProgress): string {
    const [, ...rest] = reason.trimEnd().split('\n');
    return FAILED.has(state) && rest.length > 0 ? this.#outputLines(event, rest.join('\n')) : '';
  }

  /** Lines of the coordinator itself. */
  #coordinate(event: Shown): string {
    const { activity: state, doing } = this.#state.coordinator;
    const told = this.#told.get('') ?? UNTOLD;
    if (told.state === state && told.doing === doing) return '';
    const isKnown = this.#note('', told, { state, doing });
    if (isKnown || doing === '') return '';
    const mark = looksOf[state];
    return this.#line(
      { ...event, task: COORDINATOR },
      state === 'running' ? this.#call(doing) : { mark, word: mark.word, text: doing },
    );
  }

  /** Remembers what an agent does. Returns true if it is a call of the same step that has a line already. */
  #note(agent: string, told: Told, { state, doing }: Omit<Told, 'calls'>): boolean {
    const before = told.state === state ? told.calls : NO_CALLS;
    const call = doing.replace(/ and \d+ more$/, '');
    const calls = state === 'running' ? new Set([...before, call]) : NO_CALLS;
    this.#told.set(agent, { state, doing, calls });
    return before.has(call);
  }

  #call(text: string): Words {
    const columns = terminalColumns(this.#output) - TIME_CHARS - this.#nameColumns - '    ▸ '.length;
    return { mark: looksOf.running, text: textOnOneLine(text, columns) };
  }

  #worded(task: TaskProgress): Words {
    const { state, doing, reason = '', attempts } = task;
    const mark = taskTextStyle(task);
    const { word } = mark;
    switch (state) {
      case 'running':
        return this.#call(doing);
      case 'starting':
        return { mark, word: attempts > 1 ? `${word}, attempt ${attempts}` : word };
      case 'landed':
      case 'done':
        return { mark, word, figures: runLinesFigures(task) };
      case 'failed':
      case 'skipped':
      case 'conflict':
      case 'gate_failed':
      case 'cancelled':
        return { mark, word, text: reason.split('\n', 1)[0] ?? '' };
      case 'waiting':
      case 'thinking':
      case 'asking':
      case 'throttled':
      case 'retrying':
      case 'merging':
      case 'gate':
        return { mark, word, text: doing };
    }
  }

  #keep(task: string, line: string): string {
    const lines = this.#groups.get(task) ?? [];
    this.#groups.set(task, lines);
    if (lines.length < GROUP_LINES_MAX) lines.push(line);
    else lines[GROUP_LINES_MAX] = '… and more\n';
    return '';
  }

  /** The calls of an attempt, as a folded group. */
  #group({ task = '' }: Shown): string {
    const lines = this.#groups.get(task) ?? [];
    this.#groups.delete(task);
    const progress = this.#state.tasks.get(task);
    if (lines.length === 0 || progress === undefined) return '';
    const { id, plan, attempts } = progress;
    const title = textOnOneLine(`${id}: ${plan.title}${attempts > 1 ? `, attempt ${attempts}` : ''}`, Infinity);
    return `::group::${inertText(title).replaceAll('%', '%25')}\n${lines.join('')}::endgroup::\n`;
  }

  #report(): string {
    const columns = terminalColumns(this.#output);
    return this.#inert(`\n${runReport(this.#state, { columns, style: this.#style }, this.#log.when)}`);
  }

  /** Always one line. */
  #line({ at, task }: Shown, { mark, word = '', text = '', figures = '', printed }: Words): string {
    const who = textOnOneLine(task ?? DROVER, NAME_COLUMNS_MAX);
    const said = [
      this.#style('dim', clockText(at).slice(0, TIME_CHARS)),
      who + ' '.repeat(Math.max(0, this.#nameColumns - widthOfText(who))),
      [
        ...(mark === undefined ? [] : [this.#style(mark.format, mark.sign)]),
        ...(word === '' ? [] : [this.#style(mark?.format ?? 'dim', word) + (text === '' ? '' : ':')]),
        ...(text === '' ? [] : [textOnOneLine(text, Infinity)]),
        ...(printed === undefined ? [] : [this.#style('dim', `| ${printed}`)]),
      ].join(' '),
      ...(figures === '' ? [] : [this.#style('dim', figures)]),
    ];
    return this.#inert(`${said.join('  ')}\n`);
  }

  #inert(text: string): string {
    return this.#log.safe(text);
  }
}

function runLinesGate({ command, tasks, base }: Of<'gate_start' | 'gate_end'>, verdict: string): string {
  const where = base ? ' on the base commit' : tasks.length === 0 ? '' : ` with ${tasks.join(', ')}`;
  return `${command}${verdict}${where}`;
}

function runLinesFigures({ files, usage, cost, startedMs = 0, endedMs = 0 }: TaskProgress): string {
  const tokens = totalTokens(usage);
  return [
    ...(files.length === 0 ? [] : [`${files.length} ${files.length === 1 ? 'file' : 'files'}`]),
    ...(tokens === 0 ? [] : [`${shortCountText(tokens)} tokens`]),
    ...(cost === undefined ? [] : [dollarsText(cost)]),
    durationText(endedMs - startedMs),
  ].join(' · ');
}
