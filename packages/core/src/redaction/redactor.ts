// Takes secrets out of texts: journal, events, output, diagnostics, requests.
//
// A redactor knows two kinds of secrets: exact values, in any of their usual encodings, and the shapes of the
// tokens that services hand out, also inside base64. Each becomes `[redacted:<kind>]`. Requests to a model lose
// drover's own values only (request-redaction.ts), since the model may have to edit tokens in a user's files.

import { type Json, type JsonObject, isJsonObject } from '@drover/protocol/json';
import { AnchorSearch } from './shapes/anchor-search.ts';
import { DeltaRedaction } from './delta-redaction.ts';
import { type Scope, type Suspect, ANCHOR_CHARS, suspectShapes } from './shapes/suspects.ts';

const DEPTH_MAX = 1_000;

export class Redactor {
  readonly #values: readonly string[];
  readonly #scope: Scope;
  #ready: { readonly search: AnchorSearch; readonly suspects: readonly Suspect[] } | undefined;

  /** `values`: the exact secrets to hide. */
  constructor(values: Iterable<string>, scope: Scope = 'values and shapes') {
    this.#values = [...values];
    this.#scope = scope;
  }

  /** Returns the text without its secrets; the same string if there are none. */
  text(text: string): string {
    const { search, suspects } = this.#prepared();
    // With a few long literals `includes` skips ahead by their length, so a whole conversation costs next to nothing.
    if (this.#scope === 'values only' && !suspects.some(({ anchor }) => text.includes(anchor))) return text;
    // Most texts contain no anchor at all.
    if (search.next(text, 0, true) === text.length) return text;
    return DeltaRedaction.whole(text, search, suspects);
  }

  /** Redacts every string in the value, but no keys; returns the same value if nothing changed. */
  value<Value extends Json>(value: Value): Value {
    return this.#value(value, 0) as Value;
  }

  /** Returns a redaction for text that arrives and is shown in pieces. */
  deltas(): DeltaRedaction {
    const { search, suspects } = this.#prepared();
    return new DeltaRedaction(search, suspects);
  }

  // Lazy, because it takes some milliseconds, which a command without secrets should save.
  #prepared(): { readonly search: AnchorSearch; readonly suspects: readonly Suspect[] } {
    if (this.#ready === undefined) {
      const suspects = suspectShapes(this.#values, this.#scope);
      const search = new AnchorSearch(suspects.map((suspect) => suspect.anchor.slice(0, ANCHOR_CHARS)));
      this.#ready = { search, suspects };
    }
    return this.#ready;
  }

  #value(value: Json, depth: number): Json {
    if (typeof value === 'string') return this.text(value);
    if (typeof value !== 'object' || value === null) return value;
    // A value nested this deeply cannot be written as JSON either.
    if (depth > DEPTH_MAX) return '[redacted:too-deep]';
    if (!isJsonObject(value)) {
      const items = value.map((item) => this.#value(item, depth + 1));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    return this.#object(value, depth);
  }

  #object(value: JsonObject, depth: number): Json {
    const entries = Object.entries(value);
    const redacted = entries.map(([key, item]) => [key, this.#value(item, depth + 1)] as const);
    const isSame = redacted.every(([, item], index) => item === entries[index]?.[1]);
    return isSame ? value : Object.fromEntries(redacted);
  }
}
