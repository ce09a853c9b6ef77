// Gates: commands that must pass once the agent is done.

import { newId } from '@drover/core/ids';
import { childEnvironment } from '@drover/core/tools/process/environment';
import { runShell } from '@drover/core/tools/process/run-shell';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { redactorFor } from '../diagnostics.ts';
import { type Io, print } from '../io.ts';
import { clean, forLog } from '../views/text/terminal-text.ts';

const GATE_MS_MAX = 3_600_000;
// Test runners put the verdict last.
const OUTPUT_BYTES_KEPT = 64 * 1024;
const LINES_SHOWN = 20;

export type Gates = {
  readonly gates: readonly string[];
  readonly cwd: string;
  readonly sandbox: SandboxPolicy | undefined;
};

/** Runs them in order; the first that fails ends it, and is told on standard error with the end of its output. */
export async function gatesPass({ gates, cwd, sandbox }: Gates, io: Io, signal: AbortSignal): Promise<boolean> {
  for (const gate of gates) {
    const tail = new Tail();
    const keep = (chunk: Buffer): undefined => tail.push(chunk);
    const command = { script: gate, cwd, env: childEnvironment(io.env), callId: newId('call'), sandbox };
    const end = await runShell({ ...command, timeoutMs: GATE_MS_MAX, onOutput: keep }, signal);
    if (end.exitCode === 0) continue;
    const how = end.exitCode === undefined ? `ended by ${end.signal ?? end.endedBy}` : `exit code ${end.exitCode}`;
    const redactor = await redactorFor(io);
    const text = redactor.text(`${tail.lastLines()}drover: the gate '${gate}' fails (${how})\n`);
    await print(io.stderr, forLog(clean(text), io.env));
    return false;
  }
  return true;
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
