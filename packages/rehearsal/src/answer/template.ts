// Templates such as `{{ lastResult }}` in the scripted text of the model.
//
// An unknown name stays as it is, since a text may be about templates.

import type { Json } from '../json.ts';
import type { RequestView } from '../wire/wire.ts';

const TEMPLATE = /\{\{\s*([a-zA-Z]+)(?:\.(\d+))?\s*\}\}/g;

export type Fill = (text: string) => string;

/** `match`: the groups of the condition that chose the answer. */
export function answerTemplateFill(view: RequestView, match: readonly string[]): Fill {
  const one: Record<string, () => string | undefined> = {
    lastResult: () => view.results.at(-1)?.output,
    text: () => view.text,
    task: () => view.task,
    agent: () => view.agent,
    model: () => view.model,
    step: () => String(view.step),
    turn: () => String(view.turn),
    request: () => String(view.n),
  };
  const many: Record<string, (index: number) => string | undefined> = {
    results: (index) => view.results[index]?.output,
    match: (index) => match[index],
  };
  return (text) =>
    text.includes('{{')
      ? text.replace(TEMPLATE, (whole, name: string, index: string | undefined) => {
          const source = index === undefined ? one[name] : many[name];
          return source === undefined ? whole : (source(Number(index)) ?? '');
        })
      : text;
}

export function fillAnswerJson(value: Json, fill: Fill): Json {
  if (typeof value === 'string') return fill(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => fillAnswerJson(item, fill));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillAnswerJson(item, fill)]));
}
