// Runs of two workers with some MCP servers, and what their requests declare.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolDefinition } from '@drover/protocol/messages';
import { expect } from 'vitest';
import { planned, RunDesk, statuses, submits } from '../run/run-desk.ts';
import { HOSTILE } from './brokers.ts';

const ROOT = new URL('../../..', import.meta.url).pathname;

type Body = { readonly tools: readonly Pick<ToolDefinition, 'name'>[] };

export async function ranWith(count: number, answers = [submits('done')], more: object = {}) {
  const desk = await RunDesk.with(planned({ one: { answers }, two: { answers: [submits('done')] } }));
  const server = { command: 'node', args: [HOSTILE, 'none'], readable: [ROOT], startTimeout: '120s', ...more };
  const servers = Array.from({ length: count }, (_, at) => [`server-${String(at).padStart(2, '0')}`, server]);
  const file = join(desk.folder, 'mcp.json');
  writeFileSync(file, JSON.stringify({ mcpServers: Object.fromEntries(servers) }));
  const { events, end } = await desk.run(['run', 'x', '--mcp', file, '--allow', 'mcp', '--workers', '2']);
  expect(statuses(end)).toEqual({ one: 'done', two: 'done' });
  return { desk, events };
}

export function bodiesOf(desk: RunDesk, agent: string): readonly string[] {
  return desk.server.requests.filter((request) => request.agent === agent).map(({ rawBody }) => rawBody);
}

export const toolsIn = (body = '{"tools": []}') => (JSON.parse(body) as Body).tools.map(({ name }) => name);

/** All workers of a run begin with the same bytes, which declare as many served tools. */
export async function checkPrefix(count: number): Promise<void> {
  const { desk } = await ranWith(count);
  const [one = '', two = ''] = ['one', 'two'].map((task) => bodiesOf(desk, task)[0]);
  const beginning = (body: string) => body.slice(0, body.indexOf('You are worker'));
  expect(beginning(one)).toBe(beginning(two));
  expect(beginning(one).length).toBeGreaterThan(5_000);
  expect(toolsIn(bodiesOf(desk, 'default')[0])).toEqual(toolsIn(one));
  expect(toolsIn(one).filter((name) => name.startsWith('mcp__'))).toHaveLength(count);
}
