// Colours, or none: NO_COLOR and FORCE_COLOR decide, else whether it is a terminal.

import { styleText } from 'node:util';
import type { Io, Output } from '../io.ts';

type Format = Parameters<typeof styleText>[0];
export type Style = (format: Format, text: string) => string;

export function styleFor(output: Output, env: Io['env']): Style {
  if (!isColoured(output, env)) return (_format, text) => text;
  return (format, text) => styleText(format, text, { validateStream: false });
}

function isColoured(output: Output, env: Io['env']): boolean {
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return false;
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  return output.isTTY === true && env['TERM'] !== 'dumb';
}
