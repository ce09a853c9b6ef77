// Telemetry of a run while it works: spans are sent in batches as they end, metrics at the end.
//
// Failure: a collector that takes nothing costs at most its time limit at the end; the rest of the spans is dropped,
// and can be exported later.

import type { Recorded } from '@drover/protocol/events';
import { SpanFold } from './fold.ts';
import { sendTelemetryMetrics, sendTelemetrySpans } from './send.ts';
import type { TelemetrySettings } from './settings.ts';
import type { Span } from './span.ts';

const BATCH_SPANS = 200;
const WAIT_MS = 5_000;

export class LiveTelemetry {
  readonly #settings: TelemetrySettings;
  readonly #fold: SpanFold;
  readonly #sent = new Map<string, Span>(); // all spans of the run, for its metrics
  #waiting: Span[] = [];
  #sending: Promise<void> = Promise.resolve();
  #problem: string | undefined;
  #due: NodeJS.Timeout | undefined;

  constructor(settings: TelemetrySettings) {
    this.#settings = settings;
    this.#fold = new SpanFold(settings);
  }

  /**
   * Takes what an earlier process has told. It has sent that if it came to its end; what a killed process may not have
   * sent is sent again, with the same ids.
   */
  recall(record: Recorded): void {
    for (const span of this.#fold.take(record)) {
      this.#sent.set(span.spanId, span);
      this.#waiting.push(span);
    }
    if (record.type === 'run_end') this.#waiting = [];
  }

  take(record: Recorded): void {
    for (const span of this.#fold.take(record)) {
      this.#sent.set(span.spanId, span);
      this.#waiting.push(span);
    }
    if (this.#waiting.length >= BATCH_SPANS) this.#flush();
    else if (this.#waiting.length > 0) this.#due ??= setTimeout(() => this.#flush(), WAIT_MS).unref();
  }

  /** Sends the rest. Returns a sentence about what was not sent. */
  async close(): Promise<string | undefined> {
    this.#flush();
    await this.#sending;
    this.#problem ??= await sendTelemetryMetrics([...this.#sent.values()], this.#settings);
    return this.#problem;
  }

  #flush(): void {
    clearTimeout(this.#due);
    this.#due = undefined;
    const spans = this.#waiting;
    this.#waiting = [];
    // After the first failure the rest is left for a later export.
    this.#sending = this.#sending.then(async () => {
      if (this.#problem === undefined && spans.length > 0)
        this.#problem = await sendTelemetrySpans(spans, this.#settings);
    });
  }
}
