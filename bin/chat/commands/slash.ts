// Slash commands of a chat, as data.

import { UsageError } from '@drover/core/errors';
import { suggestNearestWord } from '@drover/documents/suggestion';
import type { JsonObject } from '@drover/protocol/json';
import type { Surroundings } from '../../session/execution.ts';
import { wrapText } from '../../views/text/word-wrap.ts';
import type { MenuItem } from '../complete/menu.ts';
import type { Choice } from '../screen/chooser.ts';
import type { Talk } from '../talk.ts';
import { showChatDiff, undoChatTurn } from './changes.ts';
import { chooseChatModel, useChatModel } from './models.ts';
import { showChatSessions, resumeChatSession } from './sessions.ts';
import { tellChatCost, tellChatPermissions, tellChatTokens } from './figures.ts';
import { useChatSkill } from './skills.ts';

export type Chat = {
  readonly talk: Talk;
  readonly surroundings: Surroundings;
  readonly cwd: string;
  readonly say: (text: string) => Promise<void>;
  /** Hands the conversation to a run with this goal. */
  readonly run: (goal: string) => Promise<void>;
  /** Shortens the conversation. The user can interrupt it like a turn. */
  readonly shorten: () => Promise<void>;
  readonly short: (id: string) => string;
  /** Shows the last turn of a session. */
  readonly retell: (records: readonly JsonObject[]) => Promise<void>;
  /** Lets the user choose; undefined if the user chooses nothing. */
  readonly choose: (title: string, choices: readonly Choice[]) => Promise<number | undefined>;
  readonly print: (text: string) => void;
  readonly columns: number;
};

type Slash = {
  readonly name: string;
  readonly takes?: string;
  readonly about: string;
  /** Another name, which the menu does not show. */
  readonly alias?: string;
  readonly run: (chat: Chat, rest: string) => Promise<void>;
};

const slashes: readonly Slash[] = [
  { name: '/help', about: 'this list', run: ({ say, columns }) => say(slashHelp(columns)) },
  {
    name: '/model',
    takes: '[provider/name]',
    about: 'switch to another model, or choose one from a list',
    run: (chat, rest) => (rest === '' ? chooseChatModel(chat) : useChatModel(chat, rest)),
  },
  { name: '/tokens', about: 'how long the next prompt is, and what is in it', run: tellChatTokens },
  { name: '/compact', about: 'shorten the conversation to a summary and its end', run: ({ shorten }) => shorten() },
  { name: '/clear', about: 'start a new session; the previous one is kept', run: clearChat },
  { name: '/sessions', about: 'list the sessions of this folder', run: showChatSessions },
  {
    name: '/resume',
    takes: '[session]',
    about: 'continue another session, chosen from a list',
    run: resumeChatSession,
  },
  { name: '/diff', about: 'show what this session has changed', run: showChatDiff },
  { name: '/undo', about: 'undo the file changes of the last turn', run: undoChatTurn },
  { name: '/skill', takes: '[name]', about: 'list the skills, or give one to the agent', run: useChatSkill },
  { name: '/cost', alias: '/usage', about: 'show tokens and cost so far', run: tellChatCost },
  {
    name: '/run',
    takes: '<goal>',
    about: 'hand this conversation to a run, which plans the goal and works in parallel',
    run: ({ run }, goal) => run(goal),
  },
  { name: '/permissions', about: 'show mode, rules and remembered answers', run: tellChatPermissions },
];

const EXIT = { name: '/exit', alias: '/quit', about: 'leave; Ctrl-D does the same' };
const all = [...slashes, EXIT];

const names: readonly string[] = all.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias]));

export const slashItems: readonly MenuItem[] = all.map((slash) => ({
  text: slash.name,
  about: slash.about,
  sends: true,
}));

const KEYS: readonly (readonly [key: string, about: string])[] = [
  ['Enter', 'send; Alt-Enter, Ctrl-J or a \\ at its end begins another line'],
  ['Tab', 'while the agent works: send at its next step, or after the turn'],
  ['Esc', 'interrupt the agent; its work is kept, and your next message continues'],
  ['Up, Down', 'what was said before; takes back a queued message'],
  ['Ctrl-R', 'search what was said before, in all chats'],
  ['Shift-Tab', 'change the mode: edit, read only, ask'],
  ['Ctrl-O', 'show more output of a call'],
  ['@path', 'complete the path of a file; !command runs a command'],
  ['Ctrl-C', 'interrupt, or throw away what is typed; twice, leave'],
];

function slashHelp(columns: number): string {
  const named = all.map(
    (slash) => [`${slash.name} ${'takes' in slash ? slash.takes : ''}`.trim(), slash.about] as const,
  );
  const widest = Math.max(...named.map(([name]) => name.length));
  const indent = ' '.repeat(widest + 5);
  const line = ([name, about]: readonly [string, string]): string =>
    `   ${name.padEnd(widest)}  ${wrapText(about, Math.max(columns - indent.length, 12)).replaceAll('\n', `\n${indent}`)}`;
  return [...named.map(line), '', ...KEYS.map(line)].join('\n');
}

/** Parses a slash command, whose result is true if the chat is over; undefined for a message. */
export function findSlashCommand(text: string): ((chat: Chat) => Promise<boolean>) | undefined {
  const [, typed, rest = ''] = /^(\/[a-z]*)(?:\s+([^]*))?$/i.exec(text.trimEnd()) ?? [];
  if (text === 'exit' || text === 'quit') return async () => true;
  if (typed === undefined) return undefined;
  const name = typed.toLowerCase();
  const slash = all.find((each) => each.name === name || each.alias === name);
  if (slash === undefined)
    throw new UsageError(
      `there is no ${typed}${suggestNearestWord(typed, names) || '; /help lists what there is'} (a message may begin with a space)`,
    );
  if (rest !== '' && !('takes' in slash && slash.takes !== undefined))
    throw new UsageError(`${typed} takes nothing further`);
  return async (chat) => {
    if (!('run' in slash)) return true;
    await slash.run(chat, rest.trim());
    return false;
  };
}

async function clearChat({ talk, say, short }: Chat): Promise<void> {
  if (!talk.isBegun) return say('nothing was said yet');
  const before = short(await talk.startAnew());
  await say(`started a new session; resume the previous one with: drover chat --session ${before}`);
}
