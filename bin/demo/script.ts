// The scripted answers of the demo's models. Agents, tools, merges and tests are real.
//
// The plan shows common troubles. Two tasks add a line at the same place: the second one conflicts and is retried. Two
// tasks pass alone and fail together, because one renames a function that the other uses: the tests find it, and a
// second plan repairs it. One request is refused with 429.

import type { JsonObject } from '@drover/rehearsal/json';
import type { AgentScript, Answer, Script } from '@drover/rehearsal/script';

export const GOAL = 'Make the shop fit for business: whole cents, stock, discounts and receipts, documented.';

// Most answers write files, which no view shows as they stream.
const READING_SPEED = 400; // tokens a second
const THINKING_MS = 200;
const PAUSE_MS = '500'; // that the provider asks for with its 429

const demoCall = (name: string, args: JsonObject) => ({ name, args });
const demoWrite = (path: string, content: string) => demoCall('write', { path, content });
const demoSays = (text: string, ...calls: readonly ReturnType<typeof demoCall>[]): Answer => ({ text, calls });
const demoSubmits = (summary: string): Answer => ({ calls: [demoCall('submit_result', { summary })] });
const TESTS = demoCall('shell', { command: 'node --test' });

type Tested = { readonly name: string; readonly file: string };

const demoTest = ({ name, file }: Tested, title: string, claim: string): string =>
  `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ${name} } from '../src/${file}.js';

test('${title}', () => {
  ${claim}
});
`;

const demoReceipt = (format: string): string => `// The text that the customer takes home.

import { ${format} } from './format.js';
import { total } from './price.js';

export function receipt(items) {
  const lines = items.map(({ name, price, count }) => count + ' x ' + name + '  ' + ${format}(price * count));
  return [...lines, 'Total  ' + ${format}(total(items))].join('\\n');
}
`;

const RECEIPT_TEST = demoTest(
  { name: 'receipt', file: 'receipt' },
  'a receipt lists the items and their total',
  `assert.equal(receipt([{ name: 'tea', price: 2, count: 2 }]), '2 x tea  4.00 EUR\\nTotal  4.00 EUR');`,
);

const demoIndex = (...exports: readonly string[]): string =>
  `// The functions of the shop.

export { total } from './price.js';
${exports.join('\n')}
`;
const STOCK = `export { inStock } from './stock.js';`;
const DISCOUNT = `export { discounted } from './discount.js';`;

const PLAN = [
  {
    id: 'cents',
    title: 'Count in whole cents',
    prompt: 'total() must give whole cents: three items of 0.1 cost 0.3. Add a test.',
    files: ['src/price.js', 'test/price.test.js'],
  },
  {
    id: 'rename',
    title: 'Call it formatMoney',
    prompt: 'format() says too little: rename it to formatMoney() wherever it is used.',
    files: ['src/format.js', 'test/format.test.js'],
  },
  {
    id: 'stock',
    title: 'Know what is in stock',
    prompt: 'Add inStock(shelf, name) in src/stock.js with a test, and export it.',
    files: ['src/stock.js'],
  },
  {
    id: 'discount',
    title: 'Give discounts',
    prompt: 'Add discounted(price, percent) in src/discount.js with a test, and export it.',
    files: ['src/discount.js'],
  },
  {
    id: 'receipt',
    title: 'Print receipts',
    prompt: 'Add receipt(items) in src/receipt.js with a test; it formats money with src/format.js.',
    files: ['src/receipt.js'],
  },
  {
    id: 'docs',
    title: 'Document what there is',
    prompt: 'Say in the README what the shop can do now.',
    dependsOn: ['cents', 'stock'],
    files: ['README.md'],
  },
] as const;

const COORDINATOR: readonly Answer[] = [
  demoSays(
    'First a look at what there is.',
    demoCall('glob', { pattern: '**/*.js' }),
    demoCall('read', { path: 'src/index.js' }),
    demoCall('read', { path: 'src/price.js' }),
    demoCall('read', { path: 'src/format.js' }),
  ),
  demoSays(
    'Six tasks, most of them independent; the documentation waits for two of the others.',
    demoCall('submit_plan', { tasks: PLAN as unknown as JsonObject[] }),
  ),
  demoSays(
    'Receipts used format(), which another task has renamed meanwhile. A small fix repairs it.',
    demoCall('submit_plan', {
      tasks: [
        {
          id: 'receipt',
          title: 'Print receipts, with formatMoney',
          prompt: 'Add receipt(items) in src/receipt.js with a test. Money is formatted by formatMoney() now.',
          dependsOn: ['rename'],
          files: ['src/receipt.js'],
        },
      ],
    }),
  ),
  demoSays(
    'The shop counts in whole cents, knows its stock, gives discounts, prints receipts and is documented. All tests pass on the merged result. The receipts took a second plan, because they used a function that was renamed at the same time.',
  ),
];

const WORKERS: Readonly<Record<string, readonly Answer[]>> = {
  cents: [
    demoSays(
      'A sum of fractions is not exact; it has to be rounded to cents.',
      demoCall('edit', { path: 'src/price.js', old: '  return sum;', new: '  return Math.round(sum * 100) / 100;' }),
      demoCall('edit', {
        path: 'test/price.test.js',
        old: `test('a basket`,
        new: `test('three dimes are thirty cents', () => {\n  assert.equal(total([{ price: 0.1, count: 3 }]), 0.3);\n});\n\ntest('a basket`,
      }),
    ),
    demoSays('Does it hold?', TESTS),
    demoSubmits('total() rounds to whole cents; tested with three items of 0.1.'),
  ],
  rename: [
    demoSays(
      'Two files know the name.',
      demoCall('edit', { path: 'src/format.js', old: 'function format(', new: 'function formatMoney(' }),
      demoCall('edit', { path: 'test/format.test.js', old: 'import { format }', new: 'import { formatMoney }' }),
      demoCall('edit', { path: 'test/format.test.js', old: 'format(3)', new: 'formatMoney(3)' }),
    ),
    demoSays('Now the tests.', TESTS),
    demoSubmits('format() is formatMoney() in src/format.js and its test; nothing else used it.'),
  ],
  stock: [
    demoSays(
      'A shelf is a map from names to counts.',
      demoWrite(
        'src/stock.js',
        `// The stock on the shelf.\n\nexport function inStock(shelf, name) {\n  return (shelf[name] ?? 0) > 0;\n}\n`,
      ),
      demoWrite(
        'test/stock.test.js',
        demoTest(
          { name: 'inStock', file: 'stock' },
          'an empty shelf has nothing',
          `assert.equal(inStock({}, 'tea'), false);`,
        ),
      ),
      demoWrite('src/index.js', demoIndex(STOCK)),
    ),
    demoSays('Run them all.', TESTS),
    demoSubmits('inStock() with a test, exported from src/index.js.'),
  ],
  'discount again': [
    demoSays('Another task has added a line where I add mine.', demoCall('read', { path: 'src/index.js' })),
    demoSays(
      'Both belong there.',
      demoWrite('src/discount.js', demoDiscount()),
      demoWrite('test/discount.test.js', demoDiscountTest()),
      demoWrite('src/index.js', demoIndex(STOCK, DISCOUNT)),
    ),
    demoSays('And the tests once more.', TESTS),
    demoSubmits('discounted() with a test, exported beside inStock().'),
  ],
  discount: [
    demoSays(
      'A percentage off, in whole cents.',
      demoWrite('src/discount.js', demoDiscount()),
      demoWrite('test/discount.test.js', demoDiscountTest()),
      demoWrite('src/index.js', demoIndex(DISCOUNT)),
    ),
    demoSays('Run the tests.', TESTS),
    demoSubmits('discounted() with a test, exported from src/index.js.'),
  ],
  'receipt again': [
    demoSays(
      'With the new name this time.',
      demoWrite('src/receipt.js', demoReceipt('formatMoney')),
      demoWrite('test/receipt.test.js', RECEIPT_TEST),
    ),
    demoSays('The tests decide.', TESTS),
    demoSubmits('receipt() with a test, on formatMoney().'),
  ],
  receipt: [
    demoSays(
      'A line for each item, and the total.',
      demoWrite('src/receipt.js', demoReceipt('format')),
      demoWrite('test/receipt.test.js', RECEIPT_TEST),
    ),
    demoSays('Test it.', TESTS),
    demoSubmits('receipt() with a test; money is formatted by format().'),
  ],
  docs: [
    demoSays('What is there to tell of?', demoCall('glob', { pattern: 'src/*.js' })),
    demoSays(
      'One line each.',
      demoCall('edit', {
        path: 'README.md',
        old: 'A few functions for a small shop.',
        new: 'A few functions for a small shop: `total` counts in whole cents, `inStock` looks at the shelf.',
      }),
    ),
    demoSubmits('The README says what total() and inStock() do.'),
  ],
};

function demoDiscount(): string {
  return `// Less for more.\n\nexport function discounted(price, percent) {\n  return Math.round(price * (100 - percent)) / 100;\n}\n`;
}

function demoDiscountTest(): string {
  return demoTest({ name: 'discounted', file: 'discount' }, 'a tenth off', 'assert.equal(discounted(10, 10), 9);');
}

/** The text that identifies each worker: the part after the conversation that all share. */
const ASSIGNED: Readonly<Record<string, string>> = {
  'discount again': 'Your task is discount:[^]*This is attempt',
  'receipt again': 'Your task is receipt: Print receipts, with',
};

/** At a pace to watch on a terminal, at once elsewhere. */
export function demoScript(isWatched: boolean): Script {
  const pace = isWatched ? { tokensPerSecond: READING_SPEED, delayMs: THINKING_MS } : {};
  const paced = (answers: readonly Answer[]): Answer[] => answers.map((answer) => ({ ...answer, ...pace }));
  const agents = Object.entries(WORKERS).map(([name, answers]): [string, AgentScript] => [
    name,
    { assigned: ASSIGNED[name] ?? `Your task is ${name}:`, answers: paced(answers) },
  ]);
  return {
    order: 'conversation',
    answers: paced(COORDINATOR),
    agents: Object.fromEntries(agents),
    faults: [{ agent: 'discount', at: 2, fault: 'status', status: 429, headers: { 'retry-after-ms': PAUSE_MS } }],
  };
}
