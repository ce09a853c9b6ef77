// Tolerant JSON readers for server responses.
//
// Server formats are poorly documented and often malformed. A field of the wrong type reads as absent.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';

export function looseObject(value: Json | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

function looseList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** The objects in a list; other entries are skipped. */
export function looseObjects(value: Json | undefined): readonly JsonObject[] {
  return looseList(value).filter(isJsonObject);
}

/** The text, or '' if the value is not text. */
export function looseText(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** A whole number of at least 0, rounded down; undefined for anything else. */
export function looseCount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined;
}

/** The JSON object that a text holds; undefined if it holds anything else. */
export function parseLooseObject(text: string): JsonObject | undefined {
  const value = parseLooseJson(text);
  return isJsonObject(value) ? value : undefined;
}

export function parseLooseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** One line of at most `charsMax` characters, without control characters. */
export function looseTextOnOneLine(text: string, charsMax: number): string {
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
  return line.length <= charsMax ? line : `${line.slice(0, charsMax - 1).toWellFormed()}…`;
}
