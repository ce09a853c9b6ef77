// The JSON Schema of every file that people write, made from the schema that reads it. Editors use them.

import { z } from 'zod';
import type { JsonObject } from '@drover/protocol/json';
import { scriptSchema } from '@drover/rehearsal/schema';
import { batchSchema } from './batch-spec.ts';
import { configSchema } from './config-file.ts';
import { planSchema } from './plan-file.ts';
import { repositoriesSchema } from './repositories-file.ts';

function jsonSchemaOfFile(title: string, schema: z.ZodType): JsonObject {
  const made = z.toJSONSchema(schema, {
    io: 'input',
    // Every key of a map is text, so the schema need not say it.
    override: (each) => {
      if (JSON.stringify(each.jsonSchema.propertyNames) === '{"type":"string"}') delete each.jsonSchema.propertyNames;
    },
  });
  const { $schema = '', ...rest } = JSON.parse(JSON.stringify(made)) as JsonObject;
  return { $schema, title, ...rest };
}

/** By the name of the reference page. */
export const jsonSchemas = {
  config: () => jsonSchemaOfFile('drover config', configSchema),
  'plan-file': () => jsonSchemaOfFile('drover plan', planSchema),
  'batch-spec': () => jsonSchemaOfFile('drover batch spec', batchSchema),
  repositories: () => jsonSchemaOfFile('drover repositories file', repositoriesSchema),
  'rehearsal-script': () => jsonSchemaOfFile('drover rehearsal script', scriptSchema),
};
