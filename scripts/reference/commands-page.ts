// The reference page of all commands and their options, made from the declarations that parse them.

import { commands } from '../../bin/drover.ts';
import { type Command, type Option, SHORT_FORMS } from '../../bin/start/command.ts';
import type { ListedCommand } from '../../bin/start/command-line.ts';
import { code, page, table } from './markdown.ts';

const INTRO =
  'Every command also answers `--help` (or `drover help <command>`). An unknown flag is an error with a suggestion and exit code 2. [Failures and exit codes](failures.md) lists what each exit code means.';

export async function commandsPage(): Promise<string> {
  const sections = await Promise.all(commands.map(async (listed) => section(listed, await listed.load())));
  const list = commands.map(({ name, about }) => `- [\`drover ${name}\`](#drover-${name}): ${about}`).join('\n');
  return page('Commands and flags', '`bin/drover.ts` and `bin/commands/`', [INTRO, list, ...sections]);
}

function section({ name, about }: ListedCommand, { word, second, options, examples }: Command): string {
  const words = [word, second].filter((each) => each !== undefined);
  const shape = words.map((each) => (each.required ? ` <${each.name}>` : ` [${each.name}]`)).join('');
  const groups = Map.groupBy(Object.entries(options), ([, { group }]) => group);
  return [
    `## drover ${name}`,
    `${about}.`,
    fenced([`drover ${name}${shape} [options]`]),
    ...(words.length === 0 ? [] : [words.map((each) => `- \`${each.name}\`: ${each.about}`).join('\n')]),
    ...[...groups].map(([group, entries]) => optionTable(group, entries)),
    ...(examples.length === 0 ? [] : [fenced(examples.map(([line, what]) => `${line}  # ${what}`))]),
  ].join('\n\n');
}

function fenced(lines: readonly string[]): string {
  return ['```text', ...lines, '```'].join('\n');
}

function optionTable(group: string, entries: readonly (readonly [string, Option<unknown>])[]): string {
  const rows = entries.map(([key, option]) => [flagWords(key, option), option.about]);
  return table([group.replace(/:$/, ''), 'meaning'], rows);
}

function flagWords(key: string, { takes, choices }: Option<unknown>): string {
  const short = SHORT_FORMS.get(key);
  const value = takes === undefined ? '' : ` ${choices === undefined ? `<${takes.toLowerCase()}>` : takes}`;
  return code(`${short === undefined ? '' : `-${short}, `}--${key}${value}`);
}
