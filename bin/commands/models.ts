// drover models: lists providers and models, their prices, and which models the roles use.

import { defineCommand, flagOption } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { printError, print } from '../io.ts';
import { listModels, formatModelList } from '../model/list-models.ts';
import { loadSettings } from '../start/settings.ts';
import { jsonViewText } from '../views/json.ts';
import { textStyle } from '../views/text/style.ts';
import { terminalColumns, textForLog } from '../views/text/terminal-text.ts';

export const models = defineCommand({
  options: { json: flagOption('Options:', 'Print one JSON object') },
  examples: [
    ['drover models', 'List providers, models and prices'],
    ["drover models --json | jq -r '.models[].model'", 'Names of the known models, for a script'],
  ],
  async run({ json }, io) {
    const settings = await loadSettings(io, io.cwd);
    for (const warning of settings.warnings) await printError(io, warning);
    const listed = listModels(settings);
    const text = json
      ? `${jsonViewText(listed, 2)}\n`
      : textForLog(
          formatModelList(listed, { columns: terminalColumns(io.stdout), style: textStyle(io.stdout, io.env) }),
          io.env,
        );
    await print(io.stdout, text);
    return exitCode.done;
  },
});
