// Writes a plan as the YAML that plan-file.ts reads.

import { writeFile } from 'node:fs/promises';
import { UsageError } from '@drover/core/errors';
import { errorCodeOf } from '../start/settings.ts';
import type { PlanFile } from './plan-file.ts';

export async function writePlanFile(path: string, text: string): Promise<void> {
  await writeFile(path, text).catch((error: unknown) => {
    throw new UsageError(`--out: ${path} cannot be written (${errorCodeOf(error)})`, { cause: error });
  });
}

/** The plan in the form that `readPlanFile` reads. */
export async function formatPlanFile({ goal, tasks }: PlanFile): Promise<string> {
  const { stringify } = await import('yaml');
  const plain = tasks.map(({ id, title, prompt, dependsOn, files, mode, gates = [], model, agent }) => ({
    id,
    title,
    prompt,
    ...(dependsOn.length > 0 && { dependsOn }),
    ...(files.length > 0 && { files }),
    ...(mode === 'read' && { mode }),
    ...(gates.length > 0 && { gates }),
    ...(model !== undefined && { model }),
    ...(agent !== undefined && { agent }),
  }));
  return stringify({ ...(goal !== undefined && { goal }), tasks: plain }, { lineWidth: 100 });
}
