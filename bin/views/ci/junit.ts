// junit: the results of tasks as XML for CI systems: one suite per repository, one case per task.
//
// Text of a model or a tool is escaped, never CDATA, and has no characters that XML forbids.

import { isGoodBatchResult, type Result } from '@drover/coordinator/batch/results';
import { cleanText, inertText } from '../text/terminal-text.ts';

const MESSAGE_CHARS_MAX = 300;
const TEXT_CHARS_MAX = 20_000;

export type JunitHead = { readonly name: string; readonly at: string }; // ISO: when it began

export function formatJunit(results: readonly Result[], { name, at }: JunitHead): string {
  const suites = [...Map.groupBy(results, ({ repository }) => repository)];
  const lines = suites.map(([repository, own]) => {
    const cases = own.map((result) => junitCase(result, name)).join('');
    return `  <testsuite name="${junitAttribute(`${name} (${repository})`)}"${junitFigures(own)} timestamp="${junitAttribute(at.slice(0, 19))}">\n${cases}  </testsuite>\n`;
  });
  const head = `<testsuites name="${junitAttribute(name)}"${junitFigures(results)}>`;
  return inertText(`<?xml version="1.0" encoding="UTF-8"?>\n${head}\n${lines.join('')}</testsuites>\n`);
}

function junitFigures(results: readonly Result[]): string {
  const count = (kind: Kind) => results.filter((result) => junitKind(result) === kind).length;
  const time = results.reduce((sum, { ms }) => sum + ms, 0);
  return ` tests="${results.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}" time="${junitSeconds(time)}"`;
}

type Kind = 'good' | 'failure' | 'error' | 'skipped';

/** An error is not the task's fault: the provider or the machine failed. */
function junitKind({ status, failure }: Result): Kind {
  if (isGoodBatchResult({ status })) return 'good';
  if (status === 'skipped' || status === 'cancelled') return 'skipped';
  if (failure === undefined) return 'failure';
  return /^(provider|git|workspace|store|sandbox|worker|internal|journal|aborted)\b/.test(failure.kind)
    ? 'error'
    : 'failure';
}

function junitCase(result: Result, batch: string): string {
  const { task, title, ms, status, reason = '', summary = '', cached } = result;
  const head = `    <testcase classname="${junitAttribute(`${batch}.${task}`)}" name="${junitAttribute(title)}" time="${junitSeconds(ms)}">\n`;
  const kind = junitKind(result);
  const message = junitAttribute(reason.split('\n', 1)[0]?.slice(0, MESSAGE_CHARS_MAX) ?? '');
  const verdict = {
    good: '',
    failure: `      <failure message="${message}" type="${status}">${junitText(reason)}</failure>\n`,
    error: `      <error message="${message}" type="${junitAttribute(result.failure?.kind ?? status)}">${junitText(reason)}</error>\n`,
    skipped: `      <skipped message="${message}"/>\n`,
  }[kind];
  const words = [cached ? 'from the cache' : '', status === 'no_change' ? 'nothing to change' : '', summary]
    .filter((each) => each !== '')
    .join('\n');
  const out = words === '' ? '' : `      <system-out>${junitText(words)}</system-out>\n`;
  return `${head}${verdict}${out}    </testcase>\n`;
}

function junitSeconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}

function junitText(words: string): string {
  const tail = words.length <= TEXT_CHARS_MAX ? words : `[…] ${words.slice(-TEXT_CHARS_MAX)}`;
  return escapeXml(cleanText(tail));
}

function junitAttribute(words: string): string {
  return escapeXml(cleanText(words).replaceAll(/\s+/g, ' ')).replaceAll('"', '&quot;');
}

/** `>` too, for the sake of `]]>`, which may not appear in text. */
function escapeXml(words: string): string {
  return words
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
