// The last turn of a session, for a user who resumes it: the message, the answers, the ending. Calls are left out.

import type { Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { isCutOff } from '@drover/core/model/partial-answer';
import { eventsIn } from '../history/journal.ts';

export function lastTurn(records: readonly JsonObject[]): readonly Recorded[] {
  const events = eventsIn({ records, live: false }); // read before this process takes it up
  const begun = events.findLastIndex((event) => event.type === 'message_end' && event.message.role === 'user');
  return events.slice(Math.max(begun, 0)).filter(isTold);
}

function isTold(event: Recorded): boolean {
  switch (event.type) {
    case 'message_end':
      return event.message.role === 'user' || isCutOff(event.message);
    case 'text_start':
    case 'text_delta':
    case 'text_end':
    case 'attempt_discarded':
    case 'session_end':
      return true;
    default:
      return false;
  }
}
