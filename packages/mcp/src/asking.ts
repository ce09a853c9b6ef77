// A question of a server to the user (elicitation) goes the way of every question.

import type { ServedAgent } from '@drover/core/tools/served/tool-servers';
import type { ServedCall } from '@drover/core/tools/served/served';
import type { Answered, Asked } from './sdk/connect.ts';

export function askUser(
  _agent: ServedAgent,
  _call: ServedCall,
): (asked: Asked, signal: AbortSignal) => Promise<Answered> {
  return async () => ({ action: 'decline' });
}
