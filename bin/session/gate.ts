// Gates of a session: commands that must pass once the agent is done.
//
// They run before the turn's ending is told, so the journal and every view know which gate failed.
// A gate that the signal stops has no end; a resume runs the gates again.

import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { ToolError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { runShell, type ShellEnd } from '@drover/core/tools/process/run-shell';
import type { GateEvent } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { type Io, print } from '../io.ts';
import { cleanText, textForLog } from '../views/text/terminal-text.ts';

const GATE_MS_MAX = 3_600_000;
// Test runners put the verdict last.
const OUTPUT_BYTES_KEPT = 64 * 1024;
const LINES_SHOWN = 20;

export type GatesOptions = {
  readonly gates: readonly string[];
  readonly cwd: string;
  readonly sandbox: SandboxPolicy | undefined;
};

export class Gates {
  readonly #options: GatesOptions;
  readonly #io: Io;
  #failed: { readonly lines: string; readonly command: string; readonly how: string } | undefined;

  constructor(options: GatesOptions, io: Io) {
    this.#options = options;
    this.#io = io;
  }

  /** Runs the gates in order, up to the first that fails. */
  async check(emit: (event: GateEvent) => void, signal: AbortSignal): Promise<Failure | undefined> {
    this.#failed = undefined;
    for (const command of this.#options.gates) {
      if (signal.aborted) return turnFailureOfSignal(signal);
      const about = { command, tree: '', tasks: [] };
      emit({ type: 'gate_start', ...about });
      const { passed, how, lines, durationMs } = await this.#run(command, signal);
      if (signal.aborted) return turnFailureOfSignal(signal);
      const output = `${lines}${how}`.trimEnd();
      emit({ type: 'gate_end', ...about, passed, flaky: false, output, durationMs });
      if (passed) continue;
      this.#failed = { lines, command, how };
      return { kind: 'gate.failed', command, output: how };
    }
    return undefined;
  }

  /** Prints the end of the failed gate's output on standard error. Call it after the view is closed. */
  async tellFailure(): Promise<void> {
    if (this.#failed === undefined) return;
    const { lines, command, how } = this.#failed;
    const redactor = await diagnosticsRedactor(this.#io);
    const text = redactor.text(`${lines}drover: the gate '${command}' fails (${how})\n`);
    await print(this.#io.stderr, textForLog(cleanText(text), this.#io.env));
  }

  /** Runs one gate. A gate that can't be started has failed. */
  async #run(script: string, signal: AbortSignal): Promise<GateEnd> {
    const { cwd, sandbox } = this.#options;
    const tail = new Tail();
    const onOutput = (chunk: Buffer): undefined => tail.push(chunk);
    const command = { script, cwd, env: childProcessEnvironment(this.#io.env), callId: newId('call'), sandbox };
    try {
      const end = await runShell({ ...command, timeoutMs: GATE_MS_MAX, onOutput }, signal);
      const passed = end.exitCode === 0;
      const durationMs = Math.round(end.durationMs);
      return { passed, how: passed ? '' : sessionGateEndWords(end), lines: tail.lastLines(), durationMs };
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      return { passed: false, how: error.message, lines: tail.lastLines(), durationMs: 0 };
    }
  }
}

type GateEnd = {
  readonly passed: boolean;
  readonly how: string; // empty if it passed
  readonly lines: string;
  readonly durationMs: number;
};

function sessionGateEndWords({ exitCode, signal, endedBy }: ShellEnd): string {
  return exitCode === undefined ? `ended by ${signal ?? endedBy}` : `exit code ${exitCode}`;
}

class Tail {
  #bytes = Buffer.alloc(0);

  push(chunk: Buffer): undefined {
    this.#bytes = Buffer.concat([this.#bytes, chunk]).subarray(-OUTPUT_BYTES_KEPT);
  }

  lastLines(): string {
    const lines = this.#bytes.toString().trimEnd().split('\n').slice(-LINES_SHOWN);
    return lines.join('\n') === '' ? '' : `${lines.join('\n')}\n`;
  }
}
