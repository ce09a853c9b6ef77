// Reads docs/cookbook.md: each recipe as the steps that a reader takes, and the output that the page shows for them.
//
//   ```sh      a block to run                    ```text    its output; a block without one prints nothing
//   ```ts      a file, named in the line before   1. Press **Label**.   a step in the browser

import { readFileSync } from 'node:fs';

const COOKBOOK = new URL('../../docs/cookbook.md', import.meta.url);

export type PageStep = {
  readonly label: string;
  /** Undefined for a button. */
  readonly value?: string;
};

export type Step =
  | { readonly type: 'run'; readonly code: string; readonly output: string }
  | { readonly type: 'save'; readonly file: string; readonly code: string }
  | { readonly type: 'browse'; readonly steps: readonly PageStep[]; readonly output: string };

export type Recipe = { readonly title: string; readonly text: string; readonly steps: readonly Step[] };

export type Cookbook = { readonly setup: readonly Step[]; readonly recipes: readonly Recipe[] };

export function readCookbook(): string {
  return readFileSync(COOKBOOK, 'utf8');
}

export function parseCookbook(document: string): Cookbook {
  const [opening = '', ...sections] = document.split(/^## /m);
  const recipes = sections.map((text) => ({ title: text.split('\n')[0] ?? '', text, steps: parseSteps(text) }));
  return { setup: parseSteps(opening), recipes };
}

const BLOCK = /^```(\w*)\n([\s\S]*?)^```$/gm;

function parseSteps(text: string): readonly Step[] {
  const steps: Step[] = [];
  let end = 0;
  for (const match of text.matchAll(BLOCK)) {
    const [whole, language = '', code = ''] = match;
    const before = text.slice(end, match.index);
    end = match.index + whole.length;
    const browsed = parsePageSteps(before);
    if (browsed.length > 0) steps.push({ type: 'browse', steps: browsed, output: '' });
    if (language === 'text') addOutput(steps, code);
    else steps.push(parseBlock(language, code, before));
  }
  return steps;
}

function parseBlock(language: string, code: string, before: string): Step {
  if (language === 'sh') return { type: 'run', code, output: '' };
  const file = /Save this as `([\w.-]+)`:\s*$/.exec(before)?.[1];
  if (file === undefined) throw new Error(`the cookbook has a block that is neither run nor saved:\n${code}`);
  return { type: 'save', file, code };
}

function addOutput(steps: Step[], output: string): void {
  const last = steps.pop();
  if (last === undefined || last.type === 'save' || last.output !== '')
    throw new Error(`the cookbook shows output of no block:\n${output}`);
  steps.push({ ...last, output });
}

function parsePageSteps(text: string): readonly PageStep[] {
  const lines = text.matchAll(/^\d+\. (?:Press \*\*(.+)\*\*|Fill \*\*(.+)\*\* with (?:`(.+)`|the (token)))\.$/gm);
  return [...lines].map(([, button, field, value, token]) =>
    button === undefined ? { label: field ?? '', value: value ?? token ?? '' } : { label: button },
  );
}

/** Masks everything that differs between runs: ids, folders, ports, tokens, times and token counts. */
export function mask(text: string): string {
  return text
    .replaceAll(/\/\S*?\/tmp\.\w{10}/g, 'FOLDER')
    .replaceAll(/\bjournal\.jsonl:\d+/g, 'JOURNAL')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'ADDRESS')
    .replaceAll(/\btoken: \S{20,}/g, 'token: TOKEN')
    .replaceAll(/\b[\d.]+ (?:ms|s|min)\b/g, 'TIME')
    .replaceAll(/\b[\d,]+ tokens in · [\d,]+ out\b/g, 'TOKENS');
}
