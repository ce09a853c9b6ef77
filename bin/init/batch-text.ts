// The example batch spec that drover init writes: small, harmless, and made for the project's sources.

import { stringify } from 'yaml';
import { GROUPINGS } from '@drover/coordinator/batch/items/spec';
import type { Project } from './project.ts';

export function exampleBatchForInit({ gates, sources }: Project): string {
  const quoted = (text: string): string => stringify(text).trimEnd();
  const gate = gates[0] ?? 'make test';
  return `# An example of a batch: one task for each file that is selected. See what it would do, and cost:
#
#   drover batch .drover/batch.yaml --list
#   drover batch .drover/batch.yaml --dry-run --model anthropic/claude-sonnet-4-5
#
# All that a spec may hold: drover batch --schema
version: 1
name: document

# Which files it is about. Also possible: contains (a regular expression), diff (main...HEAD), command, repos.
select:
  files: [${quoted(sources)}]
  exclude: ['**/*.test.*', '**/node_modules/**']

# Which of them become one task, one of ${GROUPINGS.join(', ')}. Default: file.
group: file

# What is done with each. {{ path }}, {{ files }}, {{ name }}, {{ dir }} and others stand for what was selected.
task:
  title: 'Document {{ path }}'
  prompt: |
    Read {{ files }}. Write a comment above each exported function that has none: one sentence that says what it
    is for, and nothing that its name says already. Change no code.

# Commands that must pass on the merged result. Default: none.
#gates: [${quoted(gate)}]

# What it may take. Without a budget there is none.
limits: { budget: 5usd, perTask: 0.5usd, timeout: 30m, stopWhenFailed: 30% }

# How what has landed is handed over: branch (the default), merge or patch.
deliver: branch
`;
}
