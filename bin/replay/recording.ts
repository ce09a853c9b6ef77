// Reads a journal as a recording that can be replayed: prompts, answers, and the result of each call. Discarded
// attempts and repeated requests are left out.

import type { Recorded } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { JsonObject } from '@drover/protocol/json';
import { isModelAnswerCutOff } from '@drover/core/model/partial-answer';
import type { AssistantMessage, Message, ToolResult, UserMessage } from '@drover/protocol/messages';

export type RecordedAnswer = {
  readonly message: AssistantMessage;
  /** Results by position of their call; a hole if the result is unknown. */
  readonly results: readonly (ToolResult | undefined)[];
  /** Messages that the user sent during the turn, after this answer. */
  readonly steering: readonly UserMessage[];
};

type RecordedTurn = {
  readonly asked: UserMessage;
  readonly answers: readonly RecordedAnswer[];
  /** The last ending of the turn; undefined if the journal has none. */
  readonly ending: 'done' | 'incomplete' | 'error' | 'cancelled' | undefined;
  /** The reason why it was not done. */
  readonly failure: Failure | undefined;
};

export type Recording = {
  readonly turns: readonly RecordedTurn[];
  readonly messages: readonly Message[];
};

const STOPPED: Failure = { kind: 'aborted', by: 'crash' };

type OpenAnswer = {
  readonly message: AssistantMessage;
  readonly results: (ToolResult | undefined)[];
  readonly steering: UserMessage[];
};
type OpenTurn = Pick<RecordedTurn, 'asked'> & {
  readonly number: number | undefined;
  readonly answers: OpenAnswer[];
  ending: RecordedTurn['ending'];
  failure: Failure | undefined;
};

export function readRecording(records: readonly JsonObject[]): Recording {
  const turns: OpenTurn[] = [];
  const messages: Message[] = [];
  for (const record of records as unknown as readonly Recorded[]) {
    const turn = turns.at(-1);
    const answer = turn?.answers.at(-1);
    switch (record.type) {
      case 'message_end':
        // The failure that cut an answer off is replayed; the partial text is not.
        if (record.kept === false || isModelAnswerCutOff(record.message)) break;
        messages.push(record.message);
        foldRecordedMessage(turns, record.message, record.turn);
        break;
      case 'tool_execution_end': {
        const { toolUseId: id, name, output, isError, callIndex } = record;
        if (answer !== undefined) answer.results[callIndex] = { id, name, output, isError };
        break;
      }
      case 'done':
      case 'incomplete':
      case 'error':
      case 'cancelled':
        if (turn === undefined) break;
        turn.ending = record.type;
        turn.failure = recordedFailure(record);
    }
  }
  return { turns, messages };
}

function recordedFailure(
  ending: Extract<Recorded, { readonly type: NonNullable<RecordedTurn['ending']> }>,
): OpenTurn['failure'] {
  if (ending.type === 'cancelled') return { kind: 'aborted', by: 'user' };
  return ending.type === 'done' ? undefined : ending.failure;
}

function foldRecordedMessage(turns: OpenTurn[], message: Message, number: number | undefined): void {
  const turn = turns.at(-1);
  switch (message.role) {
    case 'user':
      if (number !== undefined && turn?.number === number && turn.answers.length > 0) {
        turn.answers.at(-1)?.steering.push(message);
        return;
      }
      // The default until an ending says otherwise.
      turns.push({ number, asked: message, answers: [], ending: undefined, failure: STOPPED });
      return;
    case 'assistant':
      turn?.answers.push({ message, results: [], steering: [] });
      return;
    case 'tool': {
      // A call that never began has its result only here, and so do images.
      const results = turn?.answers.at(-1)?.results;
      message.results.forEach((result, at) => {
        if (results !== undefined) results[at] = { ...result, ...results[at] };
      });
    }
  }
}
