// Slash commands of a chat, as data.

import { UsageError } from '@drover/core/errors';
import { knownProviders } from '@drover/core/model/catalog';
import { chooseModel } from '../model/model-choice.ts';
import type { Settings } from '../start/settings.ts';
import { suggestion } from '@drover/documents/suggestion';
import { count, dollars, tokenFigures, tokens } from '../views/text/figures.ts';
import { wrapped } from '../views/text/word-wrap.ts';
import type { Talk } from './talk.ts';

export type Chat = {
  readonly talk: Talk;
  readonly settings: Settings;
  readonly cwd: string;
  readonly say: (text: string) => Promise<void>;
  /** Shortens the conversation. The user can interrupt it like a turn. */
  readonly shorten: () => Promise<void>;
  readonly short: (id: string) => string;
  readonly columns: number;
};

type Slash = {
  readonly name: string;
  readonly takes?: string;
  readonly about: string;
  /** Returns true if the chat is over. */
  readonly run: (chat: Chat, rest: string) => Promise<boolean>;
};

const slashes: readonly Slash[] = [
  {
    name: '/help',
    about: 'this list',
    run: async ({ say, columns }) => {
      await say(help(columns));
      return false;
    },
  },
  {
    name: '/model',
    takes: '[provider/name]',
    about: 'switch to another model, or show the current one',
    run: async (chat, rest) => {
      await (rest === '' ? tellModel(chat) : useModel(chat, rest));
      return false;
    },
  },
  {
    name: '/usage',
    about: 'show usage so far and the length of the conversation',
    run: async ({ talk, say }) => {
      const { usage, cost, tokens: prompt } = talk.standing;
      const figures = [...tokens(usage), ...(cost === undefined ? [] : [dollars(cost)])].join(' · ');
      await say(`${figures}; the conversation has about ${count(prompt.expected)} of ${count(prompt.window)} tokens`);
      return false;
    },
  },
  {
    name: '/tokens',
    about: 'how long the next prompt is: estimate, reported, ratio, window',
    run: async ({ talk, say }) => {
      await say(tokenFigures(talk.standing.tokens).join(' · '));
      return false;
    },
  },
  {
    name: '/compact',
    about: 'shorten the conversation to a summary and its end',
    run: async ({ shorten }) => {
      await shorten();
      return false;
    },
  },
  {
    name: '/clear',
    about: 'start a new session; the previous one is kept',
    run: async ({ talk, say, short }) => {
      if (!talk.isBegun) await say('nothing was said yet');
      else
        await say(
          `started a new session; resume the previous one with: drover chat --session ${short(await talk.startAnew())}`,
        );
      return false;
    },
  },
  { name: '/quit', about: 'leave; Ctrl-D does the same', run: async () => true },
];

export const slashNames: readonly string[] = slashes.map(({ name }) => name);

const KEYS: readonly (readonly [key: string, about: string])[] = [
  ['Enter', 'send; Alt-Enter, Ctrl-J or a \\ at its end begins another line'],
  ['Esc', 'interrupt the agent; its work is kept, and your next message continues'],
  ['Up, Down', 'what was said before'],
  ['Ctrl-C', 'interrupt, or throw away what is typed; twice, leave'],
];

function help(columns: number): string {
  const named = slashes.map(({ name, takes = '', about }) => [`${name} ${takes}`.trim(), about] as const);
  const widest = Math.max(...named.map(([name]) => name.length));
  const indent = ' '.repeat(widest + 5);
  const line = ([name, about]: readonly [string, string]): string =>
    `   ${name.padEnd(widest)}  ${wrapped(about, Math.max(columns - indent.length, 12)).replaceAll('\n', `\n${indent}`)}`;
  return [...named.map(line), '', ...KEYS.map(line)].join('\n');
}

/** Parses a slash command; undefined for a message, even one that begins with a path. */
export function slashIn(text: string): ((chat: Chat) => Promise<boolean>) | undefined {
  const [, name, rest = ''] = /^(\/[a-z]*)(?:\s+([^]*))?$/i.exec(text.trimEnd()) ?? [];
  if (text === 'exit' || text === 'quit') return async () => true;
  if (name === undefined) return undefined;
  const slash = slashes.find((each) => each.name === name.toLowerCase());
  if (slash === undefined)
    throw new UsageError(
      `there is no ${name}${suggestion(name, slashNames) || '; /help lists what there is'} (a message may begin with a space)`,
    );
  if (rest !== '' && slash.takes === undefined) throw new UsageError(`${name} takes nothing further`);
  return (chat) => slash.run(chat, rest.trim());
}

async function tellModel({ talk, settings, say }: Chat): Promise<void> {
  const known = [...knownProviders.map(({ id }) => id), ...settings.providers.keys()];
  await say(`${talk.model.label} is asked; /model provider/name asks another (${[...new Set(known)].join(', ')})`);
}

async function useModel({ talk, settings, cwd, say }: Chat, wanted: string): Promise<void> {
  await talk.useModel(chooseModel(wanted, settings, cwd));
  await say(`${talk.model.label} is asked from here on`);
}
