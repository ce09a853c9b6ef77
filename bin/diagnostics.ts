// Diagnostics: facts that help to find a fault in drover itself. They are off unless --log FILE or DROVER_LOG=<level>
// asks for them; diagnosis.ts of core says what each level means. A line is printed if its level is at least the one
// asked for. Facts about a run are events and belong to a view. Secrets are redacted as they are in events.

import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { once } from 'node:events';
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import type { Diagnose } from '@drover/core/diagnosis';
import { UsageError } from '@drover/core/errors';
import type { Json } from '@drover/protocol/json';
import type { Redactor } from '@drover/core/redaction/redactor';
import type { Scope } from '@drover/core/redaction/shapes/suspects';
import type { Io } from './io.ts';
import { errorCodeOf, loadSettings, type Settings, stateFolder, environmentText } from './start/settings.ts';
import { suggestNearestWord } from '@drover/documents/suggestion';
import { bestEffort } from '@drover/core/promises';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;

export type Diagnostics = {
  readonly diagnose: Diagnose;
  /** Lines of the level debug are printed, so they are worth making. */
  readonly isDetailed: boolean;
  /** The same log, whose lines all name this run or session. */
  readonly about: (named: { readonly run: string } | { readonly session: string }) => Diagnostics;
  readonly close: () => Promise<void>;
};

const OFF: Diagnostics = {
  diagnose: () => undefined,
  isDetailed: false,
  about: () => OFF,
  close: async () => undefined,
};

export async function openDiagnostics(io: Io, file: string | undefined): Promise<Diagnostics> {
  const level = diagnosticsLevel(io.env) ?? (file === undefined ? undefined : 'debug');
  if (level === undefined) return OFF;
  const [{ pino }, redactor] = await Promise.all([import('pino'), diagnosticsRedactor(io)]);
  const withLogger = (logger: Logger, close: () => Promise<void>): Diagnostics => ({
    diagnose: (message, fields, told = 'debug') =>
      logger[told](
        withoutDiagnosticBindings(redactor.value(fields as Readonly<Record<string, Json>>), logger),
        redactor.text(message),
      ),
    isDetailed: level === 'debug' || level === 'trace',
    about: (named) => withLogger(logger.child(redactor.value(named) as object), close),
    close,
  });
  const options = { level, base: {}, timestamp: pino.stdTimeFunctions.isoTime };
  if (file === undefined) return withLogger(pino(options, io.stderr), async () => undefined);
  const path = resolve(io.cwd, file);
  const stream = createWriteStream(path, { flags: 'a' });
  try {
    await once(stream, 'open');
  } catch (error) {
    throw new UsageError(`--log: ${path} cannot be written (${errorCodeOf(error)}); choose another file`, {
      cause: error,
    });
  }
  // A disk that fills up later costs the diagnostics, not the run.
  stream.on('error', () => undefined);
  return withLogger(pino(options, stream), async () => {
    stream.end();
    await bestEffort(finished(stream));
  });
}

/** The fields that are not bindings of the logger: pino would print those twice. */
function withoutDiagnosticBindings(fields: Json, logger: Logger): object {
  const bound = logger.bindings();
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([name]) => !Object.hasOwn(bound, name)));
}

/** Imported when needed: most commands show nothing that could hold a secret. */
export async function diagnosticsRedactor(io: Io, scope: Scope = 'values and shapes'): Promise<Redactor> {
  const { openSecretRedactor } = await import('./secrets/own-secrets.ts');
  return openSecretRedactor(await diagnosticsSecrets(io), scope);
}

/** A config with mistakes gives no key names; the catalog's key names are still used. */
async function diagnosticsSecrets(io: Io): Promise<Pick<Settings, 'home' | 'env' | 'providers'>> {
  try {
    return await loadSettings(io, io.cwd);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return {
      home: environmentText(io.env, 'HOME') === undefined ? '' : stateFolder(io),
      env: io.env,
      providers: new Map(),
    };
  }
}

/** Throws UsageError where the environment wishes for a level that there is not. */
export function checkDiagnosticsLevel(env: Io['env']): void {
  diagnosticsLevel(env);
}

function diagnosticsLevel(env: Io['env']): (typeof LEVELS)[number] | undefined {
  const text = environmentText(env, 'DROVER_LOG');
  const level = LEVELS.find((candidate) => candidate === text);
  if (text === undefined || level !== undefined) return level;
  throw new UsageError(
    `DROVER_LOG is '${text}', which is none of ${LEVELS.join(', ')}${suggestNearestWord(text, LEVELS)}`,
  );
}
