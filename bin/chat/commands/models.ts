// /model: changes the model from the next message on.

import { knownModels, knownProviders } from '@drover/core/model/catalog';
import { chooseModel } from '../../model/model-choice.ts';
import type { Chat } from './slash.ts';

/** Lets the user choose among the known models of providers that have a key, and the current one. */
export async function chooseChatModel(chat: Chat): Promise<void> {
  const { talk, surroundings, choose, say } = chat;
  const { label } = talk.model;
  const { env, providers } = surroundings.settings;
  const hasKey = new Set(knownProviders.filter(({ keyEnv }) => (env[keyEnv] ?? '') !== '').map(({ id }) => id));
  const known = knownModels
    .filter(({ provider }) => hasKey.has(provider))
    .map(({ provider, name }) => `${provider}/${name}`);
  const labels = [...new Set([label, ...known])];
  const chosen = await choose(
    'model',
    labels.map((each) => ({ label: each, about: each === label ? 'in use' : '', isCurrent: each === label })),
  );
  const wanted = chosen === undefined ? undefined : labels[chosen];
  if (wanted !== undefined && wanted !== label) return useChatModel(chat, wanted);
  const others = [...new Set([...knownProviders.map(({ id }) => id), ...providers.keys()])].join(', ');
  await say(`${label} is asked; /model provider/name asks another (${others})`);
}

export async function useChatModel({ talk, surroundings, cwd, say }: Chat, wanted: string): Promise<void> {
  await talk.useModel(chooseModel(wanted, surroundings.settings, cwd));
  await say(`${talk.model.label} is asked from here on`);
}
