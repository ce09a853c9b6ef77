// proves(): a test that proves one of drover's guarantees.

import { test } from 'vitest';
import type { Guarantee } from '../guarantees.ts';

export function proves(_: Guarantee, behaviour: string, run: () => void | Promise<void>, timeoutMs?: number): void {
  test(behaviour, run, timeoutMs);
}
