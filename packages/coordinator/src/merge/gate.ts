// Gates: commands that must pass on a merged tree before it lands.
//
// Gates run in order in one workspace, and the first red one ends the check. A red gate runs once more, because some
// fail by chance. Verdicts are remembered per tree, also over a resume, so no tree is checked twice. A tree with
// verdicts of some gates only is checked from the first gate on: a later gate may need what an earlier one built.
//
// With `than`, gates are compared with their verdicts on that tree: a gate that is red there may stay red, and a red
// gate does not end the check, so every gate of a tree that lands has a verdict.
//
// A gate that the signal stops has no `gate_end` and no verdict.

import type { GateEvent } from '@drover/protocol/events';
import { type CommandPlace, runSlotCommand, tailOfSlotOutput } from '../slots/shell-command.ts';
import type { Workspace } from '../slots/slots.ts';

export type GateResult = { readonly passed: boolean; readonly output: string };

/** A workspace on a commit, valid until it is released. */
export type Checkout = (
  commit: string,
  signal: AbortSignal,
) => Promise<Pick<Workspace, 'path' | 'sandbox' | 'release'>>;

export type GatesOptions = {
  readonly gates: readonly string[];
  readonly checkout: Checkout;
  readonly env: Readonly<Record<string, string>>;
  readonly outputFolder: string; // folder for output that is too long for an event
  /** Verdicts from the journal, by gateResultKey. */
  readonly knownGates: ReadonlyMap<string, GateResult>;
  readonly emit: (event: GateEvent) => void;
};

export type Combined = {
  readonly commit: string;
  readonly tree: string;
  readonly tasks: readonly string[]; // tasks merged into the tree and not yet landed
  readonly base?: true; // true for the run's base
  readonly than?: string; // a tree whose failing gates may fail here too
};

export type Verdict =
  | { readonly passed: true }
  | { readonly passed: false; readonly command: string; readonly reason: string };

export function gateResultKey(tree: string, command: string): string {
  return `${tree} ${command}`;
}

export class Gates {
  readonly #options: GatesOptions;
  readonly #results: Map<string, GateResult>;

  constructor(options: GatesOptions) {
    this.#options = options;
    this.#results = new Map(options.knownGates);
  }

  /** Throws if the signal aborts. */
  async verdict(combined: Combined, signal: AbortSignal): Promise<Verdict> {
    return this.#remembered(combined) ?? (await this.#try(combined, signal));
  }

  /** Returns the gates known to fail on a tree. */
  redOn(tree: string): readonly string[] {
    return this.#options.gates.filter((command) => this.#results.get(gateResultKey(tree, command))?.passed === false);
  }

  #remembered({ tree, than }: Combined): Verdict | undefined {
    for (const command of this.#options.gates) {
      const result = this.#results.get(gateResultKey(tree, command));
      if (result === undefined) return undefined;
      if (!result.passed && !this.#mayFail(command, than)) return redGateVerdict(command, result);
    }
    return { passed: true };
  }

  #mayFail(command: string, than: string | undefined): boolean {
    return than !== undefined && this.#results.get(gateResultKey(than, command))?.passed === false;
  }

  async #try(combined: Combined, signal: AbortSignal): Promise<Verdict> {
    const workspace = await this.#options.checkout(combined.commit, signal);
    try {
      for (const command of this.#options.gates) {
        const { path: cwd, sandbox } = workspace;
        const result = await this.#run(command, { combined, cwd, sandbox }, signal);
        this.#results.set(gateResultKey(combined.tree, command), result);
        if (!result.passed && !this.#mayFail(command, combined.than)) return redGateVerdict(command, result);
      }
      return { passed: true };
    } finally {
      await workspace.release();
    }
  }

  async #run(
    command: string,
    { combined, cwd, sandbox }: Pick<CommandPlace, 'cwd' | 'sandbox'> & { readonly combined: Combined },
    signal: AbortSignal,
  ): Promise<GateResult> {
    const { env, emit, outputFolder } = this.#options;
    const { tree, tasks, base } = combined;
    const about = { command, tree, tasks, ...(base && { base }) };
    const place = { cwd, env, outputFolder, sandbox };
    emit({ type: 'gate_start', ...about });
    const first = await runSlotCommand(command, place, signal);
    // A gate that timed out is not run a second time.
    const second = first.passed || first.isTimeout ? undefined : await runSlotCommand(command, place, signal);
    const passed = (second ?? first).passed;
    const flaky = second?.passed === true;
    const output = flaky ? `red at first, then green; when it was red:\n${first.output}` : (second ?? first).output;
    const durationMs = first.durationMs + (second?.durationMs ?? 0);
    emit({ type: 'gate_end', ...about, passed, flaky, output, durationMs });
    return { passed, output };
  }
}

/** Returns the smallest number of tasks that is red. All of them together are red, and none of them is green. */
export async function firstRedGate(count: number, isGreen: (tasks: number) => Promise<boolean>): Promise<number> {
  let green = 0;
  let firstKnownRed = count;
  while (firstKnownRed - green > 1) {
    const middle = Math.floor((green + firstKnownRed) / 2);
    if (await isGreen(middle)) green = middle;
    else firstKnownRed = middle;
  }
  return firstKnownRed;
}

function redGateVerdict(command: string, { output }: GateResult): Verdict {
  return { passed: false, command, reason: tailOfSlotOutput(output) };
}
