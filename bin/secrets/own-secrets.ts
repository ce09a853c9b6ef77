// Drover's own secrets, and the redactors that hide them.
//
// Its own are the keys of providers, by the variables that the catalog and the config name for them, the token of its
// server, and the tokens of logins at MCP servers. They are hidden from the model, too. All other secrets of the
// environment are hidden in what is stored and shown, and reach the model: it may have to work with them.

import { readFileSync } from 'node:fs';
import { knownProviders } from '@drover/core/model/catalog';
import { Redactor } from '@drover/core/redaction/redactor';
import type { Scope } from '@drover/core/redaction/shapes/suspects';
import { secretValues } from '@drover/core/redaction/secret-values';
import { listLoginSecrets } from '../mcp/login/login-store.ts';
import { serverTokenPath } from '../serve/token-file.ts';
import { errorCodeOf, type Settings, environmentText } from '../start/settings.ts';

export type SecretSource = Pick<Settings, 'home' | 'env' | 'providers'>;

/** The values that no request to a model may hold. */
export function listOwnSecrets({ home, env, providers }: SecretSource): readonly string[] {
  const names = [...knownProviders, ...providers.values()].flatMap(({ keyEnv }) => keyEnv ?? []);
  const keys = [...new Set(names)].flatMap((name) => environmentText(env, name)?.trim() ?? []);
  return [...keys, ...readServerTokenSecret(home), ...listLoginSecrets(home)];
}

/** Hides every secret this process knows of. Patches and configs keep shapes of tokens: a shape may be meant there. */
export function openSecretRedactor(source: SecretSource, scope: Scope = 'values and shapes'): Redactor {
  return new Redactor([...listOwnSecrets(source), ...secretValues(source.env)], scope);
}

const UNREADABLE = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM']);

/** Empty where no server was ever started. */
function readServerTokenSecret(home: string): readonly string[] {
  try {
    return [readFileSync(serverTokenPath(home), 'utf8').trim()];
  } catch (error) {
    if (UNREADABLE.has(errorCodeOf(error))) return [];
    throw error;
  }
}
