// The reference page of known models, made from the catalog.

import { modelFactsOf, knownModels, knownProviders } from '@drover/core/model/catalog';
import { code, page, table } from './markdown.ts';

const INTRO =
  'drover knows the limits and prices of these models. A model that is not listed works too; it has no price until your config names one under `prices`, so a budget in dollars is refused for it. Prices are US dollars per million tokens. `drover models` shows the same list with your keys and config.';

export function modelsPage(): string {
  const rows = knownModels.map(({ provider, name }) => {
    const { contextTokens, outputTokensMax, price } = modelFactsOf(name);
    const prices = price && [price.input, price.output, price.cacheRead, price.cacheWrite];
    const figures = prices?.map((each) => String(Number(each.toFixed(4)))) ?? ['', '', '', ''];
    return [
      code(`${provider}/${name}`),
      contextTokens.toLocaleString('en'),
      outputTokensMax.toLocaleString('en'),
    ].concat(figures);
  });
  const providers = knownProviders.map(({ id, keyEnv, defaultModel }) => [
    code(id),
    code(keyEnv),
    defaultModel === undefined ? '' : code(defaultModel),
  ]);
  return page('Models and prices', '`packages/core/src/model/catalog.ts`', [
    INTRO,
    table(['model', 'context', 'output', 'input $', 'output $', 'cache read $', 'cache write $'], rows),
    '## Providers',
    'Without `--model` drover takes the first provider of this table whose key is set.',
    table(['provider', 'key', 'default model'], providers),
  ]);
}
