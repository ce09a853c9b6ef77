// The reference page of events: when each is emitted, how it is delivered, and its fields.

import { EVENTS, type EventType } from '@drover/protocol/events';
import { EVENT_WORDS, eventFieldsOfApi } from '@drover/server/api/event-schemas';
import { code, page, table } from './markdown.ts';

const PARTS = [
  '`--view json`, the streams of `drover serve` and the journal use one vocabulary: one JSON object per event.',
  '## The envelope',
  'Every event has `v` (1), `seq` (rises by 1), `at` (ISO time), `type`, and `run` or `session`. Where they apply, it also has `worker` (0 is the coordinator), `task`, `attempt`, `turn` and `step`. Tool events carry `callId`, which is unique, and `index` = worker × 100 + `callIndex`, the number that views show.',
  '## Delivery',
  '*Lossy* events are combined and then dropped for a slow reader; the matching `_end` event repairs the gap. *Reliable* events are never dropped. *Control* events are never dropped and come exactly once. A *durable* event is on disk before drover acts on it.',
];

export function eventsPage(): string {
  const types = Object.keys(EVENTS) as EventType[];
  const sections = (['run', 'session'] as const).map((scope) => {
    const rows = types
      .filter((type) => EVENTS[type].scope === scope)
      .map((type) => {
        const { delivery, durable } = EVENTS[type];
        const fields = eventFieldsOfApi(type).map(code).join(', ');
        return [code(type), EVENT_WORDS[type], durable ? `${delivery}, durable` : delivery, fields];
      });
    const heading = scope === 'run' ? '## Events of a run' : '## Events of an agent';
    return `${heading}\n\n${table(['type', 'when', 'delivery', 'fields'], rows)}`;
  });
  return page('Events', '`packages/protocol/src/events.ts` and `packages/server/src/api/event-schemas.ts`', [
    ...PARTS,
    ...sections,
  ]);
}
