// Checks a tool's schema without running it: no regular expression of a server is ever compiled here.
//
// Providers refuse a whole request for one schema that they don't understand. So a schema that they would refuse takes
// its tool out of the list, and no other.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';

const DEPTH_MAX = 40;
const CHARS_MAX = 50_000;
const KEY = /^[A-Za-z0-9_.$-]{1,64}$/;
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
const AT_TOP = ['anyOf', 'oneOf', 'allOf', 'not', 'enum'];

/** Returns a problem of the schema of a tool's arguments; undefined if it can be used. */
export function problemOfHostileSchema(schema: Json | undefined): string | undefined {
  if (!isJsonObject(schema)) return 'its schema is no object';
  if (schema['type'] !== 'object') return 'its schema is not of type object';
  const atTop = AT_TOP.find((key) => key in schema);
  if (atTop !== undefined) return `its schema has ${atTop} at the top, which providers refuse`;
  if (isJsonDeeperThan(schema, DEPTH_MAX)) return `its schema is nested deeper than ${DEPTH_MAX}`;
  const { length } = JSON.stringify(schema);
  if (length > CHARS_MAX) return `its schema has ${length} characters, and at most ${CHARS_MAX} are taken`;
  return problemInHostileSchema(schema);
}

/** Without recursion: the value may be nested deeper than the stack. */
export function isJsonDeeperThan(value: Json, max: number): boolean {
  let level: Json[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > max) return true;
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
  }
  return false;
}

function problemInHostileSchema(schema: JsonObject): string | undefined {
  const { type, properties, required, $ref: reference } = schema;
  if (type !== undefined && ![type].flat().every((each) => typeof each === 'string' && TYPES.has(each)))
    return `its schema has the type ${JSON.stringify(type).slice(0, 60)}`;
  if (reference !== undefined && !(typeof reference === 'string' && reference.startsWith('#')))
    return 'its schema refers to another document';
  if ('x-mcp-header' in schema) return 'its schema wants arguments in HTTP headers, which drover does not send';
  if (properties !== undefined && !isJsonObject(properties)) return 'its properties are no object';
  const key = Object.keys(properties ?? {}).find((each) => !KEY.test(each));
  if (key !== undefined) return `it has an argument with the name ${JSON.stringify(key.slice(0, 60))}`;
  if (required !== undefined && !(Array.isArray(required) && required.every((each) => typeof each === 'string')))
    return 'its list of required arguments is no list of names';
  return firstFoundInHostileSchema(partsOfHostileSchema(schema), (part) =>
    isJsonObject(part) ? problemInHostileSchema(part) : plainHostileSchemaProblem(part),
  );
}

function plainHostileSchemaProblem(part: Json): string | undefined {
  return typeof part === 'boolean' ? undefined : 'a part of its schema is no schema';
}

/** The schemas inside a schema. */
function partsOfHostileSchema(schema: JsonObject): readonly Json[] {
  const maps = ['properties', 'patternProperties', '$defs', 'definitions'].map((key) => schema[key]);
  const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems'].map((key) => schema[key]);
  const single = ['additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'].map(
    (key) => schema[key],
  );
  return [
    ...maps.flatMap((map) => (isJsonObject(map) ? Object.values(map) : [])),
    ...lists.flatMap((list) => (Array.isArray(list) ? list : [])),
    ...[schema['items']].flat(),
    ...single,
  ].filter((part) => part !== undefined);
}

function firstFoundInHostileSchema<Each, Found>(
  all: readonly Each[],
  find: (each: Each) => Found | undefined,
): Found | undefined {
  for (const each of all) {
    const found = find(each);
    if (found !== undefined) return found;
  }
  return undefined;
}
