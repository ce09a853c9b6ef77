// Runs recipes of the cookbook in a real bash: one shell for all blocks of a recipe, an empty home, and no settings of
// this machine.

import { describe } from 'vitest';
import { withoutNotice } from '../cli/fake-io.ts';
import { findProgram } from '../support/process/programs.ts';
import { openShell } from '../support/process/shell.ts';
import { type Cookbook, mask, type PageStep, type Recipe, type Step } from './cookbook.ts';

const TEST_MS_MAX = 120_000; // a recipe starts a dozen processes, and the machine may be busy
const MISSING = ['bash', 'curl', 'jq'].filter((name) => findProgram([name]) === undefined);

/** Tests that run recipes; skipped, with a line on stderr, if a program that recipes use is missing. */
export function inTerminal(title: string, tests: () => void): void {
  if (MISSING.length > 0)
    process.stderr.write(`\n*** LEFT OUT, for want of ${MISSING.join(', ')}: ${title}. Put it on the PATH.\n\n`);
  describe.runIf(MISSING.length === 0)(title, { timeout: TEST_MS_MAX }, tests);
}

/** Performs the steps on the page whose address the shell has printed, and returns the page's text. */
export type Browse = (steps: readonly PageStep[], printed: string) => Promise<string>;

/** The outputs in the page and those of the shell, masked alike. */
export type Cooked = { readonly shown: readonly string[]; readonly printed: readonly string[] };

export async function cook(cookbook: Cookbook, recipe: Recipe, browse: Browse = noBrowser): Promise<Cooked> {
  const terminal = await openShell();
  const shown: string[] = [];
  const printed: string[] = [];
  let last = '';
  for (const step of [...cookbook.setup, ...recipe.steps]) {
    if (step.type === 'save') {
      await terminal.save(step.file, step.code);
      continue;
    }
    last = step.type === 'run' ? await terminal.run(step.code) : await browse(step.steps, last);
    shown.push(labelled(step, step.output));
    printed.push(labelled(step, last));
    // Later blocks depend on this one, and might wait forever.
    if (shown.at(-1) !== printed.at(-1)) break;
  }
  return { shown: shown.slice(0, printed.length), printed };
}

async function noBrowser(): Promise<string> {
  throw new Error('this recipe needs a browser');
}

function labelled(step: Exclude<Step, { readonly type: 'save' }>, output: string): string {
  const label = step.type === 'run' ? step.code : step.steps.map((each) => each.label).join(', ');
  return `${label.trimEnd()}\n\n${mask(withoutNotice(output)).trimEnd()}`;
}
