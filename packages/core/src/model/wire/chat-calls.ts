// Chat calls: assigns the call deltas of a chat completion to calls.
//
// By the standard each delta has an index, and the first delta of a call has its id and name. Servers deviate: they
// omit the index or the id, use index 0 for every call, change the id with each delta, repeat the name or send it
// late, send arguments as an object, or send a whole call at once. A delta goes to the call with its index, else with
// its id, else to the last call, unless the delta looks like the start of another call.

import type { JsonObject } from '@drover/protocol/json';
import type { Assembly } from './assembly.ts';
import { looseCount, looseObject, parseLooseObject, looseText } from './loose.ts';

type Call = { readonly key: string; readonly index: number | undefined; id: string; name: string };
type Delta = { readonly index: number | undefined; readonly id: string; readonly name: string; readonly text: string };

export class ChatCalls {
  readonly #assembly: Assembly;
  readonly #calls: Call[] = [];

  constructor(assembly: Assembly) {
    this.#assembly = assembly;
  }

  take(wire: JsonObject): void {
    const fn = looseObject(wire['function']) ?? {};
    const given = fn['arguments'];
    const isWhole = looseObject(given) !== undefined;
    const delta: Delta = {
      index: looseCount(wire['index']),
      id: looseText(wire['id']),
      name: looseText(fn['name']),
      text: isWhole ? JSON.stringify(given) : looseText(given),
    };
    const known = this.#callOf(delta);
    const call = known === undefined || this.#isAnother(delta, known) ? this.#open(delta) : known;
    call.id ||= delta.id;
    call.name ||= delta.name;
    this.#assembly.identify(call.key, delta.id, delta.name);
    if (isWhole) this.#assembly.complete(call.key, delta.text);
    else if (delta.text !== '') this.#assembly.write(call.key, delta.text);
  }

  #callOf({ index, id }: Delta): Call | undefined {
    if (index !== undefined) return this.#calls.findLast((call) => call.index === index);
    return (id === '' ? undefined : this.#calls.findLast((call) => call.id === id)) ?? this.#calls.at(-1);
  }

  #isAnother({ index, id, name, text }: Delta, known: Call): boolean {
    if (name === '' || (id !== '' && id === known.id)) return false;
    const written = this.#assembly.textOf(known.key);
    const isDone = parseLooseObject(written) !== undefined;
    if (known.name === '' || (known.id === '' && id !== '')) return isDone;
    if (name !== known.name) return true;
    if (id === '') return isDone && text !== '';
    // If there is an index, a new id may still mean the same call: some servers make a new id for each delta.
    return isDone || (index === undefined && written === '');
  }

  #open({ index, id, name }: Delta): Call {
    const call: Call = { key: `call:${this.#calls.length}`, index, id, name };
    this.#calls.push(call);
    this.#assembly.openCall(call.key, id, name);
    return call;
  }
}
