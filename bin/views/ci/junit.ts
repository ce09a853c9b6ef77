// junit: the results of tasks as XML for CI systems: one suite per repository, one case per task. A run that failed has
// a case of its own, so a report is red whenever the exit code is not 0.
//
// Text of a model or a tool is escaped, never CDATA, and has no characters that XML forbids.

import { isGoodBatchResult, type Result } from '@drover/coordinator/batch/results';
import { exitCode } from '../../start/exit-code.ts';
import { cleanText, inertText } from '../text/terminal-text.ts';

const MESSAGE_CHARS_MAX = 300;
const TEXT_CHARS_MAX = 20_000;

export type JunitEnd = { readonly exitCode: number; readonly reason?: string };
export type JunitHead = JunitEnd & { readonly name: string; readonly at: string }; // ISO: when it began

export function formatJunit(results: readonly Result[], { name, at, ...end }: JunitHead): string {
  const suites = [...Map.groupBy(results, ({ repository }) => `${name} (${repository})`)].map(
    ([suite, own]) => [suite, own.map((result) => junitCaseOfTask(result, name))] as const,
  );
  const ofRun = junitCaseOfRun(results, name, end);
  const all = [...suites, ...(ofRun === undefined ? [] : [[name, [ofRun]] as const])];
  const lines = all.map(([suite, cases]) => {
    const head = `  <testsuite name="${junitAttribute(suite)}"${junitFigures(cases)} timestamp="${junitAttribute(at.slice(0, 19))}">`;
    return `${head}\n${cases.map(junitCase).join('')}  </testsuite>\n`;
  });
  const head = `<testsuites name="${junitAttribute(name)}"${junitFigures(all.flatMap(([, cases]) => cases))}>`;
  return inertText(`<?xml version="1.0" encoding="UTF-8"?>\n${head}\n${lines.join('')}</testsuites>\n`);
}

function junitFigures(cases: readonly Case[]): string {
  const count = (wanted: Kind) => cases.filter(({ kind }) => kind === wanted).length;
  const time = cases.reduce((sum, { ms }) => sum + ms, 0);
  return ` tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}" time="${junitSeconds(time)}"`;
}

type Kind = 'good' | 'failure' | 'error' | 'skipped';

type Case = {
  readonly classname: string;
  readonly name: string;
  readonly ms: number;
  readonly kind: Kind;
  readonly type: string;
  readonly reason: string;
  readonly out: string;
};

const ERROR_CODES: readonly number[] = [
  exitCode.internal,
  exitCode.usage,
  exitCode.provider,
  exitCode.interrupted,
  exitCode.terminated,
];

/** Returns nothing if the run is done, or if it has no reason of its own and a task is red. */
function junitCaseOfRun(results: readonly Result[], name: string, { exitCode: code, reason }: JunitEnd) {
  const isRed = results.some((result) => ['failure', 'error'].includes(junitKind(result)));
  if (code === exitCode.done || (reason === undefined && isRed)) return undefined;
  return {
    classname: name,
    name: 'the run',
    ms: 0,
    kind: ERROR_CODES.includes(code) ? 'error' : 'failure',
    type: `exit code ${code}`,
    reason: reason ?? `the run ended with exit code ${code}`,
    out: '',
  } as const satisfies Case;
}

/** An error is not the task's fault: the provider or the machine failed. */
function junitKind({ status, failure }: Result): Kind {
  if (isGoodBatchResult({ status })) return 'good';
  if (status === 'skipped' || status === 'cancelled') return 'skipped';
  if (failure === undefined) return 'failure';
  return /^(provider|git|workspace|store|sandbox|worker|internal|journal|aborted)\b/.test(failure.kind)
    ? 'error'
    : 'failure';
}

function junitCaseOfTask(result: Result, batch: string): Case {
  const { task, title, ms, status, reason = '', summary = '', cached, failure } = result;
  const kind = junitKind(result);
  const words = [cached ? 'from the cache' : '', status === 'no_change' ? 'nothing to change' : '', summary];
  return {
    classname: `${batch}.${task}`,
    name: title,
    ms,
    kind,
    type: kind === 'error' ? (failure?.kind ?? status) : status,
    reason,
    out: words.filter((each) => each !== '').join('\n'),
  };
}

function junitCase({ classname, name, ms, kind, type, reason, out }: Case): string {
  const head = `    <testcase classname="${junitAttribute(classname)}" name="${junitAttribute(name)}" time="${junitSeconds(ms)}">\n`;
  const message = junitAttribute(reason.split('\n', 1)[0]?.slice(0, MESSAGE_CHARS_MAX) ?? '');
  const verdict = {
    good: '',
    failure: `      <failure message="${message}" type="${junitAttribute(type)}">${junitText(reason)}</failure>\n`,
    error: `      <error message="${message}" type="${junitAttribute(type)}">${junitText(reason)}</error>\n`,
    skipped: `      <skipped message="${message}"/>\n`,
  }[kind];
  const words = out === '' ? '' : `      <system-out>${junitText(out)}</system-out>\n`;
  return `${head}${verdict}${words}    </testcase>\n`;
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
