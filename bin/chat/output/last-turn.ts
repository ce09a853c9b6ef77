// The last turn of a session, for a user who resumes it: message, answers and ending, without calls.

import type { Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { isModelAnswerCutOff } from '@drover/core/model/partial-answer';
import { typedWords } from '../input/attachments.ts';
import { listStoredEvents } from '../../history/journal.ts';

export function lastTurnForChat(records: readonly JsonObject[]): readonly Recorded[] {
  const events = listStoredEvents({ records, live: false }); // read before this process resumes the session
  const last = events.findLast(isUserMessageEvent)?.turn;
  // Steering messages belong to the turn too.
  const begun = events.findIndex((event) => isUserMessageEvent(event) && event.turn === last);
  return events.slice(Math.max(begun, 0)).filter(isShownInLastTurn).map(withoutNotes);
}

/** The user's own words in a message. */
function withoutNotes(event: Recorded): Recorded {
  if (event.type !== 'message_end' || event.message.role !== 'user') return event;
  const words = typedWords(event.message);
  return words === undefined ? event : { ...event, message: { role: 'user', content: [words] } };
}

function isUserMessageEvent(event: Recorded): boolean {
  return event.type === 'message_end' && event.message.role === 'user';
}

function isShownInLastTurn(event: Recorded): boolean {
  switch (event.type) {
    case 'message_end':
      return event.message.role === 'user' || isModelAnswerCutOff(event.message);
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
