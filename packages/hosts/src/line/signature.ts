// Signs and checks what travels over Redis, with one key that the coordinator and all hosts share.
//
// Redis is a door: a process that can write to it could hand a host work of its own. So every job and every entry
// of an inbox carries an HMAC, and one without a valid HMAC is refused and logged.

import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

/** The key where Redis is on loopback and the user has set none. It protects nothing. */
const OPEN = 'drover on loopback';

type Part = string | Buffer;

export class Signer {
  readonly #key: KeyObject;

  constructor(secret: string | undefined) {
    this.#key = createSecretKey(Buffer.from(secret === undefined || secret === '' ? OPEN : secret));
  }

  sign(parts: readonly Part[]): Buffer {
    const hmac = createHmac('sha256', this.#key);
    // The length in front keeps two lists of parts from having the same bytes.
    for (const part of parts) hmac.update(`${Buffer.byteLength(part)}:`).update(part);
    return hmac.digest();
  }

  isSignature(signature: Buffer | undefined, parts: readonly Part[]): boolean {
    const right = this.sign(parts);
    return signature !== undefined && signature.length === right.length && timingSafeEqual(signature, right);
  }
}
