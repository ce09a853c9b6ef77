// json: one event a line on standard output, and nothing else there, ever.

import { type Output, print } from '../io.ts';
import type { View } from './view.ts';

export function jsonView(output: Output): View {
  return {
    show: (event) => print(output, `${JSON.stringify(event)}\n`),
    say: async () => undefined,
    close: async () => undefined,
  };
}
