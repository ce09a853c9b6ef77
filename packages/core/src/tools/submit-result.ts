// submit_result: the last call of a worker, with a summary of its work. The run reads it from the details.

import * as z from 'zod/mini';
import { createSimpleTool } from './tool.ts';

export const SUBMIT_RESULT = 'submit_result';

export const submitResult = createSimpleTool(
  {
    name: SUBMIT_RESULT,
    description: 'Report your finished work, once, at the end: what was done, what was not, how it was checked.',
    input: z.strictObject({
      summary: z.string().check(z.minLength(1)),
      files: z.optional(z.array(z.string()).check(z.describe('Paths you changed.'))),
    }),
    access: 'none',
    repeatable: true,
    final: true,
    subject: () => '',
  },
  async ({ summary, files = [] }) => ({ output: 'received', details: { summary, files } }),
);
