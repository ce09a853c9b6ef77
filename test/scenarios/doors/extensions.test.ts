// A skill, an agent and a hook written for Claude Code work unchanged in a run; the same untrusted do nothing.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { calls, planned, RunDesk, says, statuses, submits, writes } from '../../support/run/run-desk.ts';
import { inSandbox } from '../../support/sandbox/box.ts';

const HOOK = `cat > hook-saw.json; grep -q '"command":"rm' hook-saw.json || exit 0; echo "never delete" >&2; exit 2`;
const FILES = {
  'a.txt': 'one\n',
  '.claude/skills/release-notes/SKILL.md':
    '---\nname: release-notes\ndescription: Use when: writing release notes.\n---\nBegin every line with a verb. See style.md.\n',
  '.claude/skills/release-notes/style.md': 'Short lines.\n',
  '.claude/agents/reviewer.md':
    '---\nname: reviewer\ndescription: Reviews changes.\ntools: Read, Grep\nmodel: sonnet\n---\nYou review. Never write.\n',
  '.claude/settings.json': JSON.stringify({
    hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: HOOK }] }] },
  }),
};

const SCRIPT = planned({
  notes: {
    answers: [
      calls('skill', { name: 'release-notes' }),
      calls('skill', { name: 'release-notes', file: 'style.md' }),
      calls('shell', { command: 'rm -f a.txt' }),
      calls('shell', { command: 'cat hook-saw.json' }),
      writes('notes.txt', 'x\n'),
      submits('done'),
    ],
  },
  review: { agent: 'reviewer', mode: 'read', answers: [writes('b.txt', 'x'), submits('looked')] },
});

/** HOME is beside the project, so folders in the project are not the user's own. */
const given = (desk: RunDesk) => ({ env: { HOME: desk.folder } });

const bodies = (desk: RunDesk) => desk.server.requests.map(({ body }) => JSON.stringify(body));

inSandbox('a skill, an agent and a hook of Claude Code', () => {
  proves('doors.claude-files', 'a trusted skill, agent and hook of Claude Code work unchanged', async () => {
    const desk = await RunDesk.with(SCRIPT, FILES);
    await desk.drover(['trust', '--yes'], given(desk));
    const { end, events } = await desk.run(['run', 'notes', '--rounds', '1', '--yes'], given(desk));
    expect(statuses(end)).toEqual({ notes: 'landed', review: 'done' });
    const ends = events.flatMap((event) => (event.type === 'tool_execution_end' ? [event] : []));
    const outputOf = (name: string, task: string) =>
      ends.filter((each) => each.name === name && each.task === task).map(({ output }) => output);
    expect(outputOf('skill', 'notes')).toEqual([
      'The skill release-notes:\n\nBegin every line with a verb. See style.md.\n\nFiles of this skill, in .claude/skills/release-notes: style.md',
      'Short lines.\n',
    ]);
    const [removal, seen] = outputOf('shell', 'notes');
    expect(removal).toMatch(/^Not run: the hook 'cat > .*never delete/s);
    expect(seen).toContain('"hook_event_name":"PreToolUse"');
    expect(seen).toContain('"tool_name":"Bash","tool_input":{"command":"cat hook-saw.json"}');
    expect(outputOf('write', 'review')[0]).toContain('the agent of this task may only use read, grep');
    const sent = bodies(desk);
    expect(sent[0]).toContain('- release-notes: Use when: writing release notes.');
    expect(sent[0]).toContain('- reviewer: Reviews changes.');
    const review = sent.filter((body) => body.includes('Your task is review'));
    expect(review.length).toBeGreaterThan(0);
    expect(review.every((body) => body.includes('For this task you are the agent reviewer:'))).toBe(true);
    expect(
      sent.filter((body) => body.includes('Your task is notes')).some((body) => body.includes('agent reviewer:')),
    ).toBe(false);
  });
});

test('the same files untrusted do nothing, on a terminal and in CI', async () => {
  for (const env of [{}, { CI: 'true' }]) {
    const desk = await RunDesk.with(
      planned({
        notes: { answers: [calls('skill', { name: 'release-notes' }), writes('notes.txt', 'x\n'), submits('done')] },
      }),
      FILES,
    );
    const ran = await desk.run(['run', 'notes', '--rounds', '1', '--yes', '--sandbox', 'off'], {
      env: { ...given(desk).env, ...env },
    });
    expect(ran.stderr).toContain('are not approved, so they are ignored');
    expect(bodies(desk).some((body) => /"name":"skill"[^}]*"description"|verb|reviewer: Reviews/.test(body))).toBe(
      false,
    );
    expect(JSON.stringify(ran.events)).toContain('There is no tool \\"skill\\"');
    expect(existsSync(join(desk.repository, 'hook-saw.json'))).toBe(false);
  }
});

test('an unknown agent in a plan file is an error before anything is spent', async () => {
  const desk = await RunDesk.with({ answers: [says('hi')] }, FILES);
  await desk.write({ 'plan.yaml': 'tasks:\n  - id: a\n    prompt: x\n    agent: reviewer\n' });
  const typed = ['run', 'go', '--plan', 'plan.yaml'];
  const untrusted = await desk.drover(typed, given(desk));
  expect([untrusted.code, untrusted.stderr]).toEqual([
    2,
    expect.stringContaining('plan.yaml:2:5: there is no agent "reviewer"'),
  ]);
  expect(desk.server.requests).toEqual([]);
});

test('the planner is told about an unknown agent, and plans again', async () => {
  const task = (agent: string) => ({ id: 'a', title: 'a', prompt: 'x', agent });
  const desk = await RunDesk.with({
    order: 'conversation',
    answers: [
      calls('submit_plan', { tasks: [task('nobody')] }),
      calls('submit_plan', { tasks: [{ id: 'a', title: 'a', prompt: 'x' }] }),
      says('done'),
    ],
    agents: { a: { assigned: 'Your task is a:', answers: [writes('b.txt', 'x\n'), submits('ok')] } },
  });
  const { end, events } = await desk.run(['run', 'go', '--rounds', '1', '--yes'], given(desk));
  expect(statuses(end)).toEqual({ a: 'landed' });
  expect(JSON.stringify(events)).toContain('there is no agent \\"nobody\\"; this project has none');
});
