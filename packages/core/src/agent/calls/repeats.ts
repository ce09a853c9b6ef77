// Repeated calls of a worker: the same call with the same result, while nothing new happens.
//
// Guarantees
//   1. A result that is new in the turn starts all counts again, so a test that stays red after each new edit does not
//      count as a repeat.
//   2. From the fifth time on the result tells the worker so. The tenth time ends the attempt.
//   3. The counts follow from the messages, so a resumed turn continues them.

import { createHash } from 'node:crypto';
import type { CallPart, Message, ToolResult } from '@drover/protocol/messages';
import { toolInputSummary } from '../../tools/summary.ts';

const TOLD_AT = 5;
const ENDS_AT = 10;
const NOTE = /\n\n\[drover: you have made this call \d+ times[^\]]*\]$/;

export class Repeats {
  readonly #seen = new Set<string>();
  readonly #counts = new Map<string, number>();

  /** The repeats in the messages since the last one of the user. */
  static in(messages: readonly Message[]): Repeats {
    const repeats = new Repeats();
    const start = messages.findLastIndex(({ role }) => role === 'user');
    let calls: readonly CallPart[] = [];
    for (const message of messages.slice(start + 1)) {
      if (message.role === 'assistant') calls = message.content.filter((part) => part.type === 'tool_call');
      if (message.role === 'tool') repeats.#count(calls, message.results);
    }
    return repeats;
  }

  /** Counts the results of a step. Returns them with notes for the worker, and the call that was made too often. */
  take(calls: readonly CallPart[], results: readonly ToolResult[]): RepeatsTaken {
    const times = this.#count(calls, results);
    const told = results.map((result, at): ToolResult => {
      const count = times[at] ?? 0;
      return count < TOLD_AT ? result : { ...result, output: `${result.output}${repeatedCallNote(count)}` };
    });
    const [worst] = calls.filter((_, at) => (times[at] ?? 0) >= ENDS_AT);
    return {
      results: told,
      ...(worst && { tooOften: { call: toolInputSummary(worst.name, worst.args), times: ENDS_AT } }),
    };
  }

  #count(calls: readonly CallPart[], results: readonly ToolResult[]): readonly number[] {
    const keys = results.map((result, at) => repeatedCallKey(calls[at], result));
    if (keys.some((key) => !this.#seen.has(key))) this.#counts.clear();
    return keys.map((key) => {
      const count = (this.#counts.get(key) ?? 0) + 1;
      this.#seen.add(key);
      this.#counts.set(key, count);
      return count;
    });
  }
}

type RepeatsTaken = {
  readonly results: readonly ToolResult[];
  readonly tooOften?: { readonly call: string; readonly times: number };
};

function repeatedCallKey(call: CallPart | undefined, { name, output, isError }: ToolResult): string {
  const parts = [name, JSON.stringify(call?.args ?? null), String(isError), output.replace(NOTE, '')];
  return createHash('sha256').update(parts.join('\0')).digest('base64');
}

function repeatedCallNote(times: number): string {
  return `\n\n[drover: you have made this call ${times} times, and nothing has changed. Do something else, or submit what you have; at ${ENDS_AT} this attempt ends.]`;
}
