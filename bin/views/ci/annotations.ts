// annotations: failures as commands for GitHub's runner, which shows them at the lines they name.
//
// Locations come from the output of gates, in the formats of compilers and test runners. Tasks that fail at the same
// location share one annotation. Paths are relative to the repository, because workspaces are gone by then. Line ends,
// percent signs, colons and commas are escaped and the rest is cleaned, so no text from outside can end a command or
// start another one.

import { isGoodBatchResult, type Result } from '@drover/coordinator/batch/results';
import { cleanText } from '../text/terminal-text.ts';

// The runner shows ten of each kind a step; a few more are found in the log.
const ANNOTATIONS_MAX = 50;
const PER_TASK_MAX = 5;
const MESSAGE_CHARS_MAX = 1_000;
const LINES_READ_MAX = 2_000;

export type Spot = {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
};

type Found = { readonly result: Result; readonly spot: Spot };

/** Ends with a newline, or is empty. `isFile` knows the paths of the repository. */
export function formatAnnotations(results: readonly Result[], isFile: (path: string) => boolean): string {
  const found = results
    .filter((result) => !isGoodBatchResult(result) && result.status !== 'skipped' && result.status !== 'cancelled')
    .flatMap((result) => annotationSpots(result, isFile).map((spot): Found => ({ result, spot })));
  const places = Map.groupBy(found, ({ spot: { file, line = 0 } }) => `${file}:${line}`);
  return [...places.values()].slice(0, ANNOTATIONS_MAX).map(formatAnnotation).join('');
}

function annotationSpots(result: Result, isFile: (path: string) => boolean): readonly Spot[] {
  const { reason = '', files } = result;
  const found = findAnnotationPlaces(reason, isFile).slice(0, PER_TASK_MAX);
  if (found.length > 0) return found;
  const [file] = result.changed.length > 0 ? result.changed : files;
  return file === undefined ? [] : [{ file, message: repositoryPathsInOutput(reason, isFile) }];
}

// src/a.ts(3,7): error …   src/a.ts:3:7 - error …   at f (src/a.ts:3:7)   File "src/a.py", line 3
const PLACES = [
  /(?<file>[^\s()[\]'":,]+)\((?<line>\d+),(?<column>\d+)\)/,
  /(?<file>[^\s()[\]'":,]+):(?<line>\d+)(?::(?<column>\d+))?/,
  /File "(?<file>[^"]+)", line (?<line>\d+)/,
];

/** Each place once, with the line of output that names it. */
export function findAnnotationPlaces(output: string, isFile: (path: string) => boolean): readonly Spot[] {
  const spots = new Map<string, Spot>();
  for (const text of output.split('\n').slice(-LINES_READ_MAX)) {
    const message = cleanText(text).trim();
    for (const place of PLACES) {
      const { file = '', line, column } = place.exec(message)?.groups ?? {};
      const path = tidyAnnotationPath(file, isFile);
      if (path === undefined) continue;
      const at = { line: Number(line), ...(column !== undefined && { column: Number(column) }) };
      const spot = { file: path, ...at, message: repositoryPathsInOutput(message, isFile) };
      if (!spots.has(`${path}:${line}`)) spots.set(`${path}:${line}`, spot);
      break;
    }
  }
  return [...spots.values()];
}

/** An absolute path of a workspace ends like one of the repository. */
function tidyAnnotationPath(path: string, isFile: (path: string) => boolean): string | undefined {
  const plain = path.replace(/^(?:file:\/\/|\.\/)+/, '');
  if (isFile(plain)) return plain;
  if (!plain.startsWith('/')) return undefined;
  const parts = plain.split('/');
  for (let from = 1; from < parts.length; from++) {
    const tail = parts.slice(from).join('/');
    if (isFile(tail)) return tail;
  }
  return undefined;
}

/** Absolute paths of a workspace become paths of the repository. */
function repositoryPathsInOutput(text: string, isFile: (path: string) => boolean): string {
  return text.replaceAll(
    /(?<![^\s()[\]'":,])(?:file:\/\/)?\/[^\s()[\]'":,]+/g,
    (path) => tidyAnnotationPath(path, isFile) ?? path,
  );
}

const WORDS: Readonly<Record<Result['status'], string>> = {
  landed: 'landed',
  no_change: 'nothing to change',
  skipped: 'skipped',
  cancelled: 'cancelled',
  failed: 'failed',
  gate_failed: 'a gate fails',
  conflict: 'conflict',
};

function formatAnnotation(found: readonly Found[]): string {
  const [first] = found;
  if (first === undefined) return '';
  const { title, status, task } = first.result;
  const { file, line, column, message } = first.spot;
  const tasks = found.length === 1 ? task : `${task} and ${found.length - 1} more`;
  const properties = [
    `file=${escapeAnnotationProperty(file)}`,
    ...(line === undefined ? [] : [`line=${line}`]),
    ...(column === undefined ? [] : [`col=${column}`]),
    `title=${escapeAnnotationProperty(`${tasks}: ${WORDS[status]}`)}`,
  ];
  const said = message === '' ? title : message;
  return `::error ${properties.join(',')}::${escapeAnnotationData(said.slice(0, MESSAGE_CHARS_MAX))}\n`;
}

function escapeAnnotationData(text: string): string {
  return cleanText(text).toWellFormed().replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeAnnotationProperty(text: string): string {
  return escapeAnnotationData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
