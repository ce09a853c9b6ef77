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

const call = (name: string, args: JsonObject) => ({ name, args });
const write = (path: string, content: string) => call('write', { path, content });
const says = (text: string, ...calls: readonly ReturnType<typeof call>[]): Answer => ({ text, calls });
const submits = (summary: string): Answer => ({ calls: [call('submit_result', { summary })] });
const TESTS = call('shell', { command: 'node --test' });

type Tested = { readonly name: string; readonly file: string };

const testOf = ({ name, file }: Tested, title: string, claim: string): string =>
  `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ${name} } from '../src/${file}.js';

test('${title}', () => {
  ${claim}
});
`;

const receipt = (format: string): string => `// What the customer takes home.

import { ${format} } from './format.js';
import { total } from './price.js';

export function receipt(items) {
  const lines = items.map(({ name, price, count }) => count + ' x ' + name + '  ' + ${format}(price * count));
  return [...lines, 'Total  ' + ${format}(total(items))].join('\\n');
}
`;

const RECEIPT_TEST = testOf(
  { name: 'receipt', file: 'receipt' },
  'a receipt lists the items and their total',
  `assert.equal(receipt([{ name: 'tea', price: 2, count: 2 }]), '2 x tea  4.00 EUR\\nTotal  4.00 EUR');`,
);

const index = (...exports: readonly string[]): string =>
  `// What the shop can do.

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
  says(
    'First a look at what there is.',
    call('glob', { pattern: '**/*.js' }),
    call('read', { path: 'src/index.js' }),
    call('read', { path: 'src/price.js' }),
    call('read', { path: 'src/format.js' }),
  ),
  says(
    'Six tasks, most of them independent; the documentation waits for two of the others.',
    call('submit_plan', { tasks: PLAN as unknown as JsonObject[] }),
  ),
  says(
    'Receipts used format(), which another task has renamed meanwhile. That is quickly made good.',
    call('submit_plan', {
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
  says(
    'The shop counts in whole cents, knows its stock, gives discounts, prints receipts and is documented. All tests pass on the merged result. The receipts took a second plan, because they used a function that was renamed at the same time.',
  ),
];

const WORKERS: Readonly<Record<string, readonly Answer[]>> = {
  cents: [
    says(
      'A sum of fractions is not exact; it has to be rounded to cents.',
      call('edit', { path: 'src/price.js', old: '  return sum;', new: '  return Math.round(sum * 100) / 100;' }),
      call('edit', {
        path: 'test/price.test.js',
        old: `test('a basket`,
        new: `test('three dimes are thirty cents', () => {\n  assert.equal(total([{ price: 0.1, count: 3 }]), 0.3);\n});\n\ntest('a basket`,
      }),
    ),
    says('Does it hold?', TESTS),
    submits('total() rounds to whole cents; tested with three items of 0.1.'),
  ],
  rename: [
    says(
      'Two files know the name.',
      call('edit', { path: 'src/format.js', old: 'function format(', new: 'function formatMoney(' }),
      call('edit', { path: 'test/format.test.js', old: 'import { format }', new: 'import { formatMoney }' }),
      call('edit', { path: 'test/format.test.js', old: 'format(3)', new: 'formatMoney(3)' }),
    ),
    says('Now the tests.', TESTS),
    submits('format() is formatMoney() in src/format.js and its test; nothing else used it.'),
  ],
  stock: [
    says(
      'A shelf is a map from names to counts.',
      write(
        'src/stock.js',
        `// What is on the shelf.\n\nexport function inStock(shelf, name) {\n  return (shelf[name] ?? 0) > 0;\n}\n`,
      ),
      write(
        'test/stock.test.js',
        testOf(
          { name: 'inStock', file: 'stock' },
          'an empty shelf has nothing',
          `assert.equal(inStock({}, 'tea'), false);`,
        ),
      ),
      write('src/index.js', index(STOCK)),
    ),
    says('Run them all.', TESTS),
    submits('inStock() with a test, exported from src/index.js.'),
  ],
  'discount again': [
    says('Somebody else has added a line where I add mine.', call('read', { path: 'src/index.js' })),
    says(
      'Both belong there.',
      write('src/discount.js', discount()),
      write('test/discount.test.js', discountTest()),
      write('src/index.js', index(STOCK, DISCOUNT)),
    ),
    says('And the tests once more.', TESTS),
    submits('discounted() with a test, exported beside inStock().'),
  ],
  discount: [
    says(
      'A percentage off, in whole cents.',
      write('src/discount.js', discount()),
      write('test/discount.test.js', discountTest()),
      write('src/index.js', index(DISCOUNT)),
    ),
    says('Run the tests.', TESTS),
    submits('discounted() with a test, exported from src/index.js.'),
  ],
  'receipt again': [
    says(
      'With the new name this time.',
      write('src/receipt.js', receipt('formatMoney')),
      write('test/receipt.test.js', RECEIPT_TEST),
    ),
    says('The tests decide.', TESTS),
    submits('receipt() with a test, on formatMoney().'),
  ],
  receipt: [
    says(
      'A line for each item, and the total.',
      write('src/receipt.js', receipt('format')),
      write('test/receipt.test.js', RECEIPT_TEST),
    ),
    says('Test it.', TESTS),
    submits('receipt() with a test; money is formatted by format().'),
  ],
  docs: [
    says('What is there to tell of?', call('glob', { pattern: 'src/*.js' })),
    says(
      'One line each.',
      call('edit', {
        path: 'README.md',
        old: 'A few functions for a small shop.',
        new: 'A few functions for a small shop: `total` counts in whole cents, `inStock` looks at the shelf.',
      }),
    ),
    submits('The README says what total() and inStock() do.'),
  ],
};

function discount(): string {
  return `// Less for more.\n\nexport function discounted(price, percent) {\n  return Math.round(price * (100 - percent)) / 100;\n}\n`;
}

function discountTest(): string {
  return testOf({ name: 'discounted', file: 'discount' }, 'a tenth off', 'assert.equal(discounted(10, 10), 9);');
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
