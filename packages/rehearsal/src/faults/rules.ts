// Decides which faults hit a request.

import { randomForFaults } from './random.ts';
import type { Api } from '../wire/wire.ts';
import { factsOfFault, type Fault, type FaultRule } from './fault.ts';

export type Struck = (api: Api, agent: string) => readonly Fault[];

/** Call it once per request, in order of arrival: it counts the requests. */
export function faultRules(rules: readonly FaultRule[], seed: number): Struck {
  const chances = rules.map((_, index) => randomForFaults(seed + index));
  const counts = new Map<string | undefined, number>();
  return (api, agent) => {
    for (const key of [undefined, agent]) counts.set(key, (counts.get(key) ?? 0) + 1);
    return rules.filter((rule, index) => {
      if (rule.agent !== undefined && rule.agent !== agent) return false;
      const n = counts.get(rule.agent) ?? 0;
      // Drawn for every request, so that one rule's hits do not depend on another rule.
      const drawn = chances[index]?.() ?? 1;
      return factsOfFault(rule.fault).apis.includes(api) && doesFaultHappen(rule, n, drawn);
    });
  };
}

function doesFaultHappen({ at, every, rate }: FaultRule, n: number, drawn: number): boolean {
  if (typeof at === 'number' && at === n) return true;
  if (typeof at === 'object' && at.includes(n)) return true;
  if (every !== undefined && n % every === 0) return true;
  return rate !== undefined && drawn < rate;
}
