// `drover` alone on a terminal: the chat if a model can be asked, otherwise an overview with the next step.

import { UsageError } from '@drover/core/errors';
import { type Io, print } from '../io.ts';
import { chooseModel } from '../model/model-choice.ts';
import { exitCode } from '../start/exit-code.ts';
import { loadSettings, findWorkFolder } from '../start/settings.ts';

const OVERVIEW = `drover turns one goal into many small tasks, and brings the results back as one tested branch.

  drover demo                   watch a whole run: no key, no network
  drover run "<goal>"           plan, work in parallel, merge, test
  drover chat                   talk with one agent in this folder
  drover help                   all commands

`;

export async function openHelpOverview(io: Io): Promise<number> {
  const missing = await missingModelHelp(io);
  if (missing === undefined) return (await import('../commands/chat.ts')).chat.run(NOTHING_TYPED, io);
  await print(io.stdout, `${OVERVIEW}Next: ${missing}\n`);
  return exitCode.done;
}

const NOTHING_TYPED = { word: undefined, second: undefined, texts: new Map<string, readonly string[]>() };

/** Returns what the model settings lack; undefined if a model can be used. */
async function missingModelHelp(io: Io): Promise<string | undefined> {
  try {
    const cwd = await findWorkFolder(undefined, io);
    chooseModel(undefined, await loadSettings(io, cwd), cwd);
    return undefined;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}
