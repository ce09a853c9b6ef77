// drover models: lists providers and models, their prices, and which models the roles use.

import { command, flag } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { complain, print } from '../io.ts';
import { listModels, modelsText } from '../model/list-models.ts';
import { loadSettings } from '../start/settings.ts';
import { jsonText } from '../views/json.ts';
import { styleFor } from '../views/text/style.ts';
import { columnsOf, forLog } from '../views/text/terminal-text.ts';

export const models = command({
  options: { json: flag('Options:', 'Print one JSON object') },
  examples: [
    ['drover models', 'List providers, models and prices'],
    ["drover models --json | jq -r '.models[].model'", 'Names of the known models, for a script'],
  ],
  async run({ json }, io) {
    const settings = await loadSettings(io, io.cwd);
    for (const warning of settings.warnings) await complain(io, warning);
    const listed = listModels(settings);
    const text = json
      ? `${jsonText(listed, 2)}\n`
      : forLog(modelsText(listed, { columns: columnsOf(io.stdout), style: styleFor(io.stdout, io.env) }), io.env);
    await print(io.stdout, text);
    return exitCode.done;
  },
});
