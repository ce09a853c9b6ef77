// Parses the command line and runs its command: yargs, strict, in one place.
//
// yargs and the commands are slow to import, so the list holds only names, and a command is loaded when it is needed.
// yargs itself prints nothing: help and completions come back as text.

import yargs, { type Argv, type Options } from 'yargs';
import { UsageError } from '@drover/core/errors';
import { listOptionNames, type Command, type Option, SHORT_FORMS, type Typed, type Word } from './command.ts';
import { exitCode } from './exit-code.ts';
import { writeCompletionScript, SHELLS } from '../help/completion.ts';
import { EXIT_CODES_TOPIC } from '../help/plain-forms.ts';
import { type Io, print } from '../io.ts';
import { commandWordsMax } from './plain-words.ts';
import { suggestNearestWord } from '@drover/documents/suggestion';

const COLUMNS_MAX = 110;
const COLUMNS_DEFAULT = 80;

const COMPLETION = 'completion';
const COMPLETIONS_FLAG = '--get-yargs-completions';
const HELP_FLAGS = ['--help', '-h'];
// yargs takes a lone "-" for a flag without a name. An unlikely word replaces it meanwhile.
const DASH = '\u{F002D}';

export type ListedCommand = {
  readonly name: string;
  readonly words: string;
  readonly about: string;
  readonly load: () => Promise<Command>;
};

type Loaded = { readonly name: string; readonly about: string; readonly command: Command };

export async function runCommandLine(
  commands: readonly ListedCommand[],
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const isCompleting = argv[0] === COMPLETIONS_FLAG;
  if (!isCompleting) checkCommandWord(commands, argv);
  if (argv[0] === COMPLETION && !argv.some((word) => HELP_FLAGS.includes(word))) {
    await print(io.stdout, writeCompletionScript(argv.slice(1), io.env['SHELL']));
    return exitCode.done;
  }

  if (isCompleting && argv[2] === COMPLETION) {
    await print(io.stdout, `${SHELLS.join('\n')}\n`);
    return exitCode.done;
  }
  const loaded = await loadNamedCommand(commands, isCompleting ? argv.slice(2) : argv);
  const offered =
    isCompleting && loaded !== undefined ? await offerCompletions(loaded.command, argv.slice(3), io) : undefined;
  let typed: Typed | undefined;
  let output = '';
  const parser = commandLineParser(io);
  for (const { name, words, about } of commands) {
    const own = loaded?.name === name ? loaded : undefined;
    const builder = (args: Argv): void => {
      if (own !== undefined) declareCommand(args, own, offered);
    };
    parser.command(`${name} ${words}`.trim(), about, builder, (args) => {
      typed = own && readTypedOptions(args, argv, own);
    });
  }
  parser
    .completion(COMPLETION, `Print a completion script: drover ${COMPLETION} ${SHELLS.join('|')}`)
    .strict(argv[0] !== COMPLETION);

  try {
    const words = argv.map((word) => (word === '-' ? DASH : word));
    await parser.parseAsync(words, {}, (_error, _args, text) => {
      output += text;
    });
  } catch (error) {
    // A user's mistake arrives as a message for `fail`, or as an error of yargs' own.
    if (error instanceof Error && (error instanceof Complaint || error.name === 'YError')) {
      throw explainCommandLineError(error.message, argv, loaded);
    }
    throw error;
  }
  if (loaded !== undefined && typed !== undefined) return loaded.command.run(typed, io);
  await print(io.stdout, output === '' ? '' : `${helpWithoutTypes(output).trimEnd()}\n`);
  return exitCode.done;
}

// yargs prints the type of every option, often on a line of its own. The placeholder is clearer.
function helpWithoutTypes(help: string): string {
  return help
    .replaceAll(/^ *\[(?:string|boolean)\]\n/gm, '')
    .replaceAll(/ *\[(?:string|boolean)\](?: \[required\])?$/gm, '');
}

// Loaded before yargs starts: if a command loads itself while yargs waits, yargs formats a help text that is never
// shown, which costs as much as the rest of its work.
async function loadNamedCommand(
  commands: readonly ListedCommand[],
  argv: readonly string[],
): Promise<Loaded | undefined> {
  const listed = commands.find(({ name }) => argv.find((word) => !word.startsWith('-')) === name);
  return listed && { ...listed, command: await listed.load() };
}

// Checked by hand, because yargs also reports the words after an unknown command as unknown arguments.
function checkCommandWord(commands: readonly ListedCommand[], argv: readonly string[]): void {
  const names = [...commands.map(({ name }) => name), COMPLETION];
  const [word] = argv;
  const hint = 'drover --help lists the commands';
  if (word === undefined) throw new UsageError(`say what to do: ${names.join(', ')}; ${hint}`);
  if (word.startsWith('-')) {
    if (!HELP_FLAGS.includes(word)) throw new UsageError(`the command comes first, and then ${word}; ${hint}`);
  } else if (!names.includes(word)) {
    throw new UsageError(`there is no command '${word}'${suggestNearestWord(word, names) || `; ${hint}`}`);
  }
}

function commandLineParser(io: Io): Argv {
  return yargs()
    .scriptName('drover')
    .usage('$0 <command>\n\nOne goal, many agents, one tested result.')
    .locale('en')
    .exitProcess(false)
    .help('help', 'Show help')
    .alias('help', 'h')
    .version(false)
    .option('version', { alias: ['v', 'V'], type: 'boolean', describe: 'Show the version', global: false })
    .wrap(Math.min(io.stdout.columns ?? COLUMNS_DEFAULT, COLUMNS_MAX))
    .parserConfiguration({
      'boolean-negation': false,
      'camel-case-expansion': false,
      'dot-notation': false,
      'greedy-arrays': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'populate--': true,
    })
    .example('$0 demo', 'Watch a whole run: no key, no network')
    .example('$0 run "replace moment with date-fns" --gate "pnpm test"', 'Many agents, one tested branch')
    .example('$0 exec "fix the failing test" --model anthropic/claude-sonnet-4-5', 'One agent in this folder')
    .epilogue(
      `drover help <command> says more about a command, and drover help ${EXIT_CODES_TOPIC} lists the exit codes.`,
    )
    .fail((message, error) => {
      throw message ? new Complaint(message) : error;
    });
}

class Complaint extends Error {}

/** Completions for each word. */
type Offered = ReadonlyMap<Word, readonly string[]>;

async function offerCompletions({ word, second }: Command, typed: readonly string[], io: Io): Promise<Offered> {
  const first = typed.find((each) => !each.startsWith('-'));
  const offered = [word, second].map(async (each) => each && ([each, await each.offered?.(io, first)] as const));
  return new Map((await Promise.all(offered)).flatMap((each) => (each?.[1] === undefined ? [] : [[each[0], each[1]]])));
}

/** `offered` is given when the shell asks for completions. */
function declareCommand(args: Argv, { name, about: sentence, command }: Loaded, offered: Offered | undefined): void {
  const { word, second, options, examples } = command;
  const words = [word, second].filter((each) => each !== undefined);
  const shape = words.map((each) => {
    const named = each.many === true ? `${each.name}…` : each.name;
    return each.required ? ` <${named}>` : ` [${named}]`;
  });
  args.usage(`$0 ${name}${shape.join('')} [options]\n\n${sentence}.`);
  for (const each of words) {
    const choices = offered?.get(each);
    args.positional(each.name, { type: 'string', describe: each.about, ...(choices && { choices }) });
  }
  for (const [key, option] of listOptionNames(options)) {
    const alias = SHORT_FORMS.get(key);
    const shape = { ...yargsOption(option, offered !== undefined), hidden: option.formerly === key };
    args.option(key, alias === undefined ? shape : { ...shape, alias });
  }
  for (const [line, about] of examples) args.example(line, about);
  args.epilogue(`Exit codes: drover help ${EXIT_CODES_TOPIC}`);
}

function yargsOption({ about, group, takes, choices }: Option<unknown>, isCompleting: boolean): Options {
  if (takes === undefined) return { group, describe: about, type: 'boolean' };
  // Otherwise the option checks its choices itself, with a clearer message.
  const offered = isCompleting && choices !== undefined ? { choices } : {};
  return {
    group,
    describe: `${choices === undefined ? `<${takes.toLowerCase()}>` : takes}: ${about}`,
    type: 'string',
    requiresArg: true,
    ...offered,
  };
}

function readTypedOptions(
  args: Readonly<Record<string, unknown>>,
  argv: readonly string[],
  { name, command }: Loaded,
): Typed {
  const { word, second, options } = command;
  const texts = new Map<string, readonly string[]>();
  for (const [key, { takes }] of listOptionNames(options)) {
    const given = args[key];
    if (takes !== undefined && given !== undefined) texts.set(key, [given].flat().map(String).map(withoutDashes));
    if (takes !== undefined || given === undefined) continue;
    // yargs reads --yes=maybe as a no.
    const valued = flagWords(argv).some((typed) => typed.startsWith(`--${key}=`));
    if (valued) throw new UsageError(`--${key} takes no value; see drover ${name} --help`);
    texts.set(key, ['']);
  }
  const rest = Array.isArray(args['--']) ? args['--'].map(String) : [];
  const placed = [word, second].map((each) => (each === undefined ? undefined : args[each.name]));
  const words = [...placed.flat().filter((each) => typeof each === 'string'), ...rest].map(withoutDashes);
  if (words.length > commandWordsMax(command)) throw tooManyWordsError({ name, command });
  const [first, next, ...others] = words;
  return { word: first, second: next, texts, ...(others.length > 0 && { others }) };
}

function withoutDashes(text: string): string {
  return text === DASH ? '-' : text;
}

/** Turns a message of yargs into a sentence with the fix. */
function explainCommandLineError(message: string, argv: readonly string[], loaded: Loaded | undefined): UsageError {
  if (loaded === undefined) return new UsageError(message);
  const { name, command } = loaded;
  const help = `see drover ${name} --help`;
  const valueless = /^Not enough arguments following: (.+)$/.exec(message)?.[1];
  if (valueless !== undefined) return new UsageError(`--${valueless} needs a value; ${help}`);
  if (message.startsWith('Not enough non-option arguments')) {
    return new UsageError(`drover ${name} needs <${command.word?.name ?? 'more'}>; ${help}`);
  }
  if (!message.startsWith('Unknown argument')) return new UsageError(message);

  const names = listOptionNames(command.options).map(([key]) => key);
  const accepted = names.flatMap((name) => [name, SHORT_FORMS.get(name) ?? name]);
  const bare = (flag: string): string => flag.replace(/^--?/, '');
  const flags = flagWords(argv).map((word) => word.replace(/=.*$/s, ''));
  const flag = flags.find((candidate) => !accepted.includes(bare(candidate)));
  if (flag === undefined) return tooManyWordsError(loaded);
  const known = Object.keys(command.options);
  return new UsageError(`drover ${name} has no ${flag}${suggestNearestWord(bare(flag), known, '--') || `; ${help}`}`);
}

function flagWords(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return (end < 0 ? argv : argv.slice(0, end)).filter((word) => /^-./.test(word));
}

function tooManyWordsError({ name, command: { word, second } }: Pick<Loaded, 'name' | 'command'>): UsageError {
  if (word === undefined) return new UsageError(`drover ${name} takes no further words; see drover ${name} --help`);
  if (second !== undefined)
    return new UsageError(`drover ${name} takes one ${word.name} and one ${second.name}; see drover ${name} --help`);
  return new UsageError(`drover ${name} takes one ${word.name}; if it has spaces, put it in quotes`);
}
