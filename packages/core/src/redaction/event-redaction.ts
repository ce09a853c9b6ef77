// Redacts secrets in events before any reader gets them.
//
// Streaming text is redacted as one text, however it is cut into deltas: a part that could still become a secret is
// held back until the next delta or the end of its block. Data that a provider sealed for itself (`native`) is
// unchanged, because it must be sent back byte for byte.

import type { Event, Place } from '@drover/protocol/events';
import type { Json } from '@drover/protocol/json';
import { isModelAnswerCutOff } from '../model/partial-answer.ts';
import type { Message } from '@drover/protocol/messages';
import type { DeltaRedaction } from './delta-redaction.ts';
import type { Redactor } from './redactor.ts';

type Delta = Extract<Event, { readonly delta: string }>;
type BlockEnd = Extract<Event, { readonly type: 'text_end' | 'thinking_end' }>;
type Stream = { readonly redaction: DeltaRedaction; last: Delta; readonly place: Place };

export class EventRedaction {
  readonly #redactor: Redactor;
  readonly #streams = new Map<string, Stream>();
  #current: Stream | undefined; // block of the previous event

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** Returns the events to show: none yet, the event, or held-back text and the event. */
  pass(event: Event, place: Place): readonly Event[] {
    if ('delta' in event) return this.#passDelta(event, place);
    this.#current = undefined;
    const rest = this.#ended(event, place);
    return [...rest, this.#clean(event)];
  }

  #passDelta(event: Delta, place: Place): readonly Event[] {
    const stream = this.#streamOf(event, place);
    stream.last = event;
    const delta = stream.redaction.push(event.delta);
    if (delta === event.delta) return [event];
    return delta === '' ? [] : [{ ...event, delta }];
  }

  #streamOf(event: Delta, place: Place): Stream {
    // Most deltas belong to the same block as the previous one, and building the key is the costly part.
    if (this.#current !== undefined && isSameRedactionStream(this.#current, event, place)) return this.#current;
    const key = redactionStreamKey(event, place);
    const stream = this.#streams.get(key) ?? { redaction: this.#redactor.deltas(), last: event, place };
    this.#streams.set(key, stream);
    this.#current = stream;
    return stream;
  }

  /** The held-back text of a finished block. */
  #ended(event: Event, place: Place): readonly Event[] {
    if (event.type === 'attempt_discarded') {
      // Only the blocks of this answer: tools and other workers continue to stream.
      for (const key of this.#streams.keys())
        if (key.endsWith(redactionPlaceKey(place)) && !key.startsWith('tool_')) this.#streams.delete(key);
      return [];
    }
    const key = redactionStreamKey(event, place);
    const stream = this.#streams.get(key);
    if (stream === undefined || !event.type.endsWith('_end')) return [];
    this.#streams.delete(key);
    // Text that was cut off may end in an unfinished secret, which can no longer be recognised.
    if (isRedactedBlockCutOff(event)) return [];
    const delta = stream.redaction.flush();
    return delta === '' ? [] : [{ ...stream.last, delta }];
  }

  #clean(event: Event): Event {
    if (isRedactedBlockCutOff(event)) return { ...event, text: this.#certain(event.text) };
    if (event.type === 'message_end') return { ...event, message: this.#cleanMessage(event.message) };
    if (event.type === 'session_end')
      return { ...event, messages: event.messages.map((message) => this.#cleanMessage(message)) };
    if (event.type === 'done')
      return event.message.role === 'assistant' ? { ...event, message: this.#cleanMessage(event.message) } : event;
    return this.#redactor.value(event as Json) as Event;
  }

  /** Drops an end that may be the beginning of a secret. */
  #certain(text: string): string {
    return this.#redactor.deltas().push(text);
  }

  #withoutCutEnd<Kind extends Message>(message: Kind): Kind {
    const last = isModelAnswerCutOff(message) ? message.content.at(-1) : undefined;
    if (!isModelAnswerCutOff(message) || last === undefined || last.type === 'tool_call') return message;
    return { ...message, content: [...message.content.slice(0, -1), { ...last, text: this.#certain(last.text) }] };
  }

  #cleanMessage<Kind extends Message>(whole: Kind): Kind {
    const { native, ...rest } = this.#withoutCutEnd(whole) as Kind & { readonly native?: Json };
    return { ...(this.#redactor.value(rest as Json) as object), ...(native !== undefined && { native }) } as Kind;
  }
}

// The end event of the same kind and position ends a block: text_delta and text_end share a key.
function redactionStreamKey(event: Event, place: Place): string {
  const kind = event.type.slice(0, event.type.lastIndexOf('_'));
  return `${kind} ${redactedBlockOf(event)}${redactionPlaceKey(place)}`;
}

function isSameRedactionStream({ last, place: { worker, turn, step } }: Stream, event: Delta, place: Place): boolean {
  if (last.type !== event.type || redactedBlockOf(last) !== redactedBlockOf(event)) return false;
  return worker === place.worker && turn === place.turn && step === place.step;
}

function redactedBlockOf(event: Event): string | number {
  return 'callId' in event ? event.callId : 'part' in event ? event.part : '';
}

function redactionPlaceKey({ worker, turn, step }: Place): string {
  return ` at ${worker} ${turn} ${step}`;
}

function isRedactedBlockCutOff(event: Event): event is BlockEnd {
  return (event.type === 'text_end' || event.type === 'thinking_end') && event.cutOff === true;
}
