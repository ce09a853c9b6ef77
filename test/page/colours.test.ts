// The page's colours: text has enough contrast, in light and in dark.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const CONTRAST_MIN = 4.5; // the contrast that people with weak eyes need for small text
const INKS = ['text', 'muted', 'accent', 'good', 'bad', 'wait', 'step', 'call', 'merge'];
const GROUNDS = ['ground', 'surface', 'raised', 'sunken', 'accent-soft'];
const PAIRS = [
  ...INKS.flatMap((ink) => GROUNDS.map((ground) => [ink, ground] as const)),
  ['accent-text', 'accent'],
  ['text', 'good-soft'],
  ['text', 'bad-soft'],
  ['bad', 'bad-soft'],
  ['text', 'wait-soft'],
  ['muted', 'wait-soft'],
] as const;

const css = readFileSync('packages/server/src/page/style/base.css', 'utf8');
const [light = '', dark = ''] = css.split('@media (prefers-color-scheme: dark)');
const coloursIn = (part: string) =>
  new Map([...part.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = '', value = '']) => [name, value]));

test.each([
  ['light', coloursIn(light)],
  ['dark', coloursIn(dark)],
])('in %s', (_, colours) => {
  const weak = PAIRS.map(([ink, ground]) => ({
    pair: `${ink} on ${ground}`,
    contrast: contrast(colours.get(ink) ?? '', colours.get(ground) ?? ''),
  })).filter((each) => !(each.contrast >= CONTRAST_MIN));
  expect(weak).toEqual([]);
});

/** Relative luminance by the accessibility guidelines (WCAG 2). */
function contrast(one: string, other: string): number {
  const [brighter = 0, darker = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return Math.round((100 * (brighter + 0.05)) / (darker + 0.05)) / 100;
}

function luminance(colour: string): number {
  const [red = Number.NaN, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
