// find_tools: finds deferred tools, whose definitions are too long to be in every request.
//
// Guarantees
//   1. The same query finds the same tools in the same order. So the tools found so far follow from the conversation,
//      also after a resume and for workers that begin with it.

import { object, string } from 'zod/mini';
import type { ServedTool } from './served.ts';
import { defineTool, type Tool } from '../tool.ts';

export const FIND_TOOLS = 'find_tools';

const FOUND_MAX = 8;
const SUMMARY_CHARS_MAX = 300;
const SERVERS_CHARS_MAX = 3_000;
const QUERY_CHARS_MAX = 500;
const WORDS_MAX = 16;

type Deferred = Pick<ServedTool, 'name' | 'description' | 'server' | 'tool'>;

export function findServedTools(deferred: readonly Deferred[]): Tool {
  return defineTool({
    name: FIND_TOOLS,
    description: `Find further tools by what they do. Tools that it finds can be called from your next answer on. There are ${deferred.length} more tools, of these servers: ${serversOfDeferredTools(deferred)}.`,
    input: object({ query: string() }),
    access: 'none',
    subject: ({ query }) => query,
    repeatable: true,
    run: async ({ query }) => foundServedToolsText(foundServedTools(deferred, query), deferred),
  });
}

/** The best matches for the words of a query, at most eight. */
export function foundServedTools<Each extends Deferred>(deferred: readonly Each[], query: string): readonly Each[] {
  const words = [
    ...new Set(
      query
        .slice(0, QUERY_CHARS_MAX)
        .toLowerCase()
        .match(/[\p{L}\p{N}]+/gu),
    ),
  ].slice(0, WORDS_MAX);
  return deferred
    .map((each, at) => ({ each, at, score: scoreOfServedTool(each, words, query) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, FOUND_MAX)
    .map(({ each }) => each);
}

function scoreOfServedTool(
  { name, tool, server, description }: Deferred,
  words: readonly string[],
  query: string,
): number {
  if (query.includes(name)) return 1_000;
  const [called, at, about] = [tool.toLowerCase(), server.toLowerCase(), description.toLowerCase()];
  return words.reduce(
    (score, word) => score + (called.includes(word) ? 4 : 0) + (at === word ? 3 : 0) + (about.includes(word) ? 1 : 0),
    0,
  );
}

function foundServedToolsText(found: readonly Deferred[], deferred: readonly Deferred[]): string {
  if (found.length === 0)
    return `No tool matches. Try other words. The servers are: ${serversOfDeferredTools(deferred)}.`;
  const lines = found.map(({ name, description }) => `${name}: ${servedToolSummary(description)}`);
  return `You can call these tools now:\n${lines.join('\n')}`;
}

function servedToolSummary(description: string): string {
  const line = description.replaceAll(/\s+/g, ' ').trim();
  return line.length > SUMMARY_CHARS_MAX ? `${line.slice(0, SUMMARY_CHARS_MAX).toWellFormed()}…` : line;
}

function serversOfDeferredTools(deferred: readonly Deferred[]): string {
  const counts = Map.groupBy(deferred, ({ server }) => server);
  const text = [...counts].map(([server, tools]) => `${server} (${tools.length})`).join(', ');
  return text.length > SERVERS_CHARS_MAX ? `${text.slice(0, SERVERS_CHARS_MAX)}…` : text;
}
