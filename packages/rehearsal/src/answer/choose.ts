// Chooses the answer to a request.
//
// First the agent is found, then the first of its answers whose conditions hold, then the next one in order. An answer
// that a fault spoiled is put back, so that the retry gets it.

import type { AgentScript, Answer, AnswerSource, Script, When } from '../script.ts';
import { answerTemplateFill, type Fill } from './template.ts';
import type { Api, Outline, RequestView, ToolOutput } from '../wire/wire.ts';

/** The agent of all requests that carry no other agent's marker. */
const DEFAULT_AGENT = 'default';

export type Chosen = { readonly answer: Answer; readonly fill: Fill; readonly putBack: () => void };

type Arrived = {
  readonly n: number;
  readonly api: Api;
  readonly outline: Outline;
  readonly body: RequestView['body'];
  readonly headers: RequestView['headers'];
};

export type Cast = {
  readonly view: (arrived: Arrived) => RequestView;
  /** Returns undefined if the script has no answer for this request. */
  readonly choose: (view: RequestView) => Chosen | undefined;
};

export function answerCastOfScript(script: Script): Cast {
  const agents = Object.entries(script.agents ?? {}).map(([name, given]) => {
    const agent: AgentScript = isAnswerList(given) ? { answers: given } : given;
    const assigned = agent.assigned === undefined ? undefined : answerPattern(agent.assigned);
    const marker = assigned === undefined ? answerMarker(name, agent.marker) : undefined;
    return { name, marker, assigned, part: answerPartOfAgent(agent, script) };
  });
  const rest = answerPartOfAgent({ answers: script.answers ?? [] }, script);
  return {
    view: (arrived) => {
      const texts = arrived.outline.said.flatMap((said) => (said.by === 'user' ? [said.text] : []));
      const beginning = `${arrived.outline.system}\n${texts[0] ?? ''}`;
      // A worker shares the start of its conversation with the coordinator.
      const found =
        agents.find(({ assigned }) => texts.some((text) => assigned?.test(text))) ??
        agents.find(({ marker }) => marker?.test(beginning));
      return requestViewForAnswer(arrived, found?.name ?? DEFAULT_AGENT, found?.assigned);
    },
    choose: (view) => (agents.find(({ name }) => name === view.agent)?.part ?? rest)(view),
  };
}

type Part = (view: RequestView) => Chosen | undefined;

function answerPartOfAgent(agent: AgentScript, script: Script): Part {
  const conditional = agent.answers.filter((source) => isAnswerConditional(source));
  const ordered = agent.answers.filter((source): source is Answer => !isAnswerConditional(source));
  const order = agent.order ?? script.order ?? 'requests';
  const loop = agent.loop ?? script.loop ?? false;
  const otherwise = agent.otherwise ?? script.otherwise;
  const given = new Map<AnswerSource, number>();
  const returned: number[] = [];
  let next = 0;

  return (view) => {
    for (const source of conditional) {
      const times = given.get(source) ?? 0;
      if (typeof source !== 'function' && times >= (source.times ?? Infinity)) continue;
      const found = typeof source === 'function' ? callAnswerSource(source, view) : holdAnswer(source, view);
      if (found === undefined) continue;
      given.set(source, times + 1);
      return { ...found, putBack: () => given.set(source, (given.get(source) ?? 1) - 1) };
    }
    const position = order === 'conversation' ? view.answers : (returned.shift() ?? next++);
    const answer = ordered[loop && ordered.length > 0 ? position % ordered.length : position] ?? otherwise;
    if (answer === undefined) return undefined;
    const putBack = (): void => {
      if (order === 'requests') returned.splice(returned.findLastIndex((other) => other < position) + 1, 0, position);
    };
    return { answer, fill: answerTemplateFill(view, []), putBack };
  };
}

function isAnswerList(given: readonly AnswerSource[] | AgentScript): given is readonly AnswerSource[] {
  return Array.isArray(given);
}

function isAnswerConditional(source: AnswerSource): boolean {
  return typeof source === 'function' || source.when !== undefined;
}

type Found = Omit<Chosen, 'putBack'>;

function callAnswerSource(source: (view: RequestView) => Answer | undefined, view: RequestView): Found | undefined {
  const answer = source(view);
  return answer && { answer, fill: answerTemplateFill(view, []) };
}

function holdAnswer(answer: Answer, view: RequestView): Found | undefined {
  const groups = matchAnswerCondition(answer.when ?? {}, view);
  return groups && { answer, fill: answerTemplateFill(view, groups) };
}

/** The groups of the text condition, or undefined if some condition does not hold. */
function matchAnswerCondition(when: When, view: RequestView): readonly string[] | undefined {
  if (when.api !== undefined && when.api !== view.api) return undefined;
  if (when.step !== undefined && when.step !== view.step) return undefined;
  if (when.turn !== undefined && when.turn !== view.turn) return undefined;
  if (when.tool !== undefined && !view.results.some(({ name }) => name === when.tool)) return undefined;
  if (when.model !== undefined && !answerPattern(when.model).test(view.model)) return undefined;
  if (when.system !== undefined && !answerPattern(when.system).test(view.system)) return undefined;
  if (when.text === undefined) return [];
  const expression = answerPattern(when.text);
  return view.latest
    .map((text) => expression.exec(text))
    .find((match) => match !== null)
    ?.map((group) => group ?? '');
}

const SLASHED = /^\/(.+)\/([a-z]*)$/s;

/** A regular expression, or a text such as `fix (\w+)` or `/fix (\w+)/i`. */
function answerPattern(source: string | RegExp): RegExp {
  // An expression with the g or y flag would remember its last position.
  if (typeof source !== 'string')
    return source.global || source.sticky ? new RegExp(source.source, source.flags.replace(/[gy]/g, '')) : source;
  const [, body, flags] = SLASHED.exec(source) ?? [];
  return body === undefined ? new RegExp(source) : new RegExp(body, (flags ?? '').replace(/[gy]/g, ''));
}

function answerMarker(name: string, marker: string | RegExp | undefined): RegExp {
  return marker === undefined ? new RegExp(`(?<![\\w-])${RegExp.escape(name)}(?![\\w-])`) : answerPattern(marker);
}

function requestViewForAnswer(
  { n, api, outline, body, headers }: Arrived,
  agent: string,
  assigned: RegExp | undefined,
): RequestView {
  const texts = outline.said.flatMap((said) => (said.by === 'user' ? [said.text] : []));
  const task = texts[0] ?? '';
  const names = new Map(
    outline.said.flatMap((said) =>
      said.by === 'assistant' ? said.calls.map(({ id, name }) => [id, name] as const) : [],
    ),
  );
  let step = 1;
  let answers = 0;
  let results: ToolOutput[] = [];
  let latest: string[] = [];
  let before = '';
  for (const said of outline.said) {
    if (said.by === 'user') {
      step = 1;
      if (assigned?.test(said.text) === true) answers = 0;
      latest.push(said.text);
    }
    if (said.by === 'tool') {
      results.push({ id: said.id, name: names.get(said.id) ?? '', output: said.output });
      latest.push(said.output);
    }
    if (said.by === 'assistant') {
      results = [];
      latest = [];
      // One answer may be several items in a row, as in the Responses API.
      if (before !== 'assistant') {
        answers += 1;
        step += 1;
      }
    }
    before = said.by;
  }
  const { model, stream, system, tools } = outline;
  return {
    n,
    api,
    agent,
    model,
    stream,
    system,
    tools,
    task,
    text: texts.at(-1) ?? '',
    results,
    latest,
    step,
    turn: texts.length,
    answers,
    body,
    headers,
  };
}
