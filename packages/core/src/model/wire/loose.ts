// Reading JSON that may not be what it should be.
//
// What servers send is half documented and often bent, so nothing about it is taken for granted: a
// field of the wrong type reads as if it were not there.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';

export function objectOf(value: Json | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** The objects among a list's entries. */
export function objectsOf(value: Json | undefined): readonly JsonObject[] {
  return listOf(value).filter(isJsonObject);
}

/** The text, or '' where there is none. */
export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** A whole number from 0, or undefined. */
export function countOf(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined;
}

/** The object that a text holds, or undefined where it holds anything else. */
export function parseObject(text: string): JsonObject | undefined {
  const value = parseJson(text);
  return isJsonObject(value) ? value : undefined;
}

export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** One line of at most `charsMax` characters, without control characters. */
export function oneLine(text: string, charsMax: number): string {
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim();
  return line.length <= charsMax ? line : `${line.slice(0, charsMax - 1).toWellFormed()}…`;
}
