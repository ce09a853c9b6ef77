// The user's answers to how workspaces of a project are prepared: setups.json in drover's own folder, by repository.

import { mkdir, readFile, realpath, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';

/** The answer for a repository: auto, none or a command. Undefined if the user was not asked yet. */
export async function readStoredSetup(home: string, top: string): Promise<string | undefined> {
  const answer = (await readSetupAnswers(home))[await realpath(top)];
  return typeof answer === 'string' ? answer : undefined;
}

/** Throws UsageError if the answer can't be stored. */
export async function storeSetup(home: string, top: string, answer: string): Promise<void> {
  const answers = { ...(await readSetupAnswers(home)), [await realpath(top)]: answer };
  const path = setupAnswersPath(home);
  try {
    await mkdir(home, { recursive: true });
    await writeFile(`${path}.new`, `${JSON.stringify(answers, undefined, 2)}\n`, { mode: 0o600 });
    await rename(`${path}.new`, path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${path} cannot be written: ${why}`, { cause: error });
  }
}

/** A file that can't be read holds no answer: the user is asked again. */
async function readSetupAnswers(home: string): Promise<JsonObject> {
  const text = await readFile(setupAnswersPath(home), 'utf8').catch(() => '{}');
  try {
    const found = JSON.parse(text) as Json;
    return isJsonObject(found) ? found : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function setupAnswersPath(home: string): string {
  return join(home, 'setups.json');
}
