// The files that `pnpm reference` writes: pages made from the code, and JSON Schemas of the files that people write.

import { jsonSchemas } from '../../bin/files/json-schemas.ts';
import { commandsPage } from './commands-page.ts';
import { environmentPage } from './environment-page.ts';
import { eventsPage } from './events-page.ts';
import { failuresPage } from './failures-page.ts';
import { guaranteesPage } from './guarantees-page.ts';
import { httpPage } from './http-page.ts';
import { modelsPage } from './models-page.ts';
import { type PageText, referencePage } from './schema-page.ts';

type Name = keyof typeof jsonSchemas;

export const pages: Readonly<Record<Name, PageText>> = {
  config: {
    title: 'The config file',
    source: 'bin/files/config-file.ts',
    intro:
      'Your config is `~/.config/drover/config.yaml`, and a project may have one in `.drover/config.yaml`. `drover init` writes both with every key commented out. A flag wins over the environment, the environment over your config, and your config over that of the project. A project may set `workers`, `ignore`, `steps` (or `turns`, its former name), `ask` and `deny`, propose `gates`, and require a `sandbox`; drover ignores its other keys until you approve the file with `drover trust`.',
    example: `
model: anthropic/claude-sonnet-4-5
workers: 4
gates: ['pnpm test']
deny: ['write(**/*.lock)', 'shell(git push*)']
timeouts: { silence: 5m }`,
  },
  'plan-file': {
    title: 'The plan file',
    source: 'bin/files/plan-file.ts',
    intro: '`drover plan` writes a plan file, and `drover run --plan plan.yaml` carries one out.',
    example: `
goal: replace moment with date-fns
tasks:
  - id: dates
    prompt: Replace moment in src/dates.ts.
    files: [src/dates.ts]
  - id: remove
    prompt: Remove moment from package.json.
    dependsOn: [dates]
    gates: ['pnpm install --frozen-lockfile']`,
  },
  'batch-spec': {
    title: 'The batch spec',
    source: 'bin/files/batch-spec.ts',
    intro:
      '`drover batch refactor.yaml` makes one task for each file, folder, package or repository that a spec selects. `drover batch --schema` prints the JSON Schema of this page for your editor.',
    example: `
version: 1
select:
  files: ['src/**/*.ts']
  exclude: ['**/*.test.ts']
group: directory
task:
  title: 'Document {{ path }}'
  prompt: Write a comment above each exported function of {{ files }} that has none.
limits: { budget: 5usd, perTask: 0.5usd, timeout: 30m, stopWhenFailed: 30% }`,
  },
  repositories: {
    title: 'The repositories file',
    source: 'bin/files/repositories-file.ts',
    intro: 'A batch spec names this file in `select.repos` to work on several repositories.',
    example: `
repositories:
  - { path: ../billing, revision: 3f2c1a7 }
  - { url: 'https://example.com/shop.git', revision: v1.4.0 }`,
  },
  'rehearsal-script': {
    title: 'The rehearsal script',
    source: 'packages/rehearsal/src/schema.ts',
    intro:
      'A script says what the scripted model answers: `drover exec --model rehearsal/script.yaml`, or `drover rehearse script.yaml` for any client. A list alone is the answers of a script that has no other keys.',
    example: `
answers:
  - calls: [{ name: read, args: { path: a.txt } }]
  - when: { tool: read }
    text: The file says hello.
  - text: Done.
    fault: crlf`,
  },
};

/** Contents by path, relative to the top of the repository. */
export async function referenceFiles(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ...schemaFiles(),
    ['docs/reference/commands.md', await commandsPage()],
    ['docs/reference/environment.md', environmentPage()],
    ['docs/reference/events.md', eventsPage()],
    ['docs/reference/failures.md', failuresPage()],
    ['docs/reference/http.md', httpPage()],
    ['docs/reference/models.md', modelsPage()],
    ['docs/guarantees.md', guaranteesPage()],
  ]);
}

/** A page and a JSON Schema for every file that people write. */
export function schemaFiles(): ReadonlyMap<string, string> {
  const names = Object.keys(pages) as Name[];
  const files = names.flatMap((name) => {
    const schema = jsonSchemas[name]();
    const json = `${JSON.stringify(schema, undefined, 2)}\n`;
    return [
      [`docs/reference/${name}.md`, referencePage(pages[name], schema)] as const,
      [`docs/reference/schemas/${name}.schema.json`, json] as const,
      // Specs beside the examples refer to it.
      ...(name === 'batch-spec' ? [['examples/batch.schema.json', json] as const] : []),
    ];
  });
  return new Map(files);
}
