// JSON as a type, and safe access to untrusted JSON.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export function isRehearsalObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isRehearsalList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** The objects of a list, each with its path; anything else counts as empty. */
export function rehearsalObjectsIn(value: Json | undefined): readonly JsonObject[] {
  return isRehearsalList(value) ? value.filter(isRehearsalObject) : [];
}

export function rehearsalText(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

export function rehearsalNumber(value: Json | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** A value in the form of an error message. */
export function showRehearsalValue(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
