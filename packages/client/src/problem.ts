// DroverProblem: a refusal of the server as an error to throw, with the fields of the problem document.

import type { Problem } from './wire.ts';

const DETAIL_CHARS_MAX = 2_000;

export class DroverProblem extends Error {
  override readonly name = 'DroverProblem';
  readonly status: number;
  readonly type: string;
  readonly title: string;
  readonly detail: string | undefined;
  readonly errors: NonNullable<Problem['errors']>;
  /** How long the server asked to wait before trying again. */
  readonly retryAfterMs: number | undefined;

  constructor(problem: Problem, retryAfterMs?: number) {
    super(problem.detail === undefined ? problem.title : `${problem.title}: ${problem.detail}`);
    this.status = problem.status;
    this.type = problem.type;
    this.title = problem.title;
    this.detail = problem.detail;
    this.errors = problem.errors ?? [];
    this.retryAfterMs = retryAfterMs;
  }

  /** True if a retry of the same request cannot succeed. */
  get isFinal(): boolean {
    return this.status < 500 && this.status !== 408 && this.status !== 425 && this.status !== 429;
  }
}

/** Parses a refusal. A proxy in between may answer in another format; its text becomes the detail. */
export function problemOfServer(response: Response, body: string): DroverProblem {
  const { status, statusText } = response;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  const waitMs = Number.isFinite(retryAfter) ? retryAfter * 1_000 : undefined;
  const told = parseServerProblem(body);
  if (told !== undefined) return new DroverProblem({ ...told, status }, waitMs);
  const title = `the server answered ${status}${statusText === '' ? '' : ` ${statusText}`}`;
  const detail = body.slice(0, DETAIL_CHARS_MAX);
  return new DroverProblem({ type: 'about:blank', title, status, ...(detail !== '' && { detail }) }, waitMs);
}

function parseServerProblem(body: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isServerProblem(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isServerProblem(value: unknown): value is Problem {
  return (
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    typeof value.type === 'string' &&
    'title' in value &&
    typeof value.title === 'string'
  );
}
