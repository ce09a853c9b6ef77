// Seals: what stands for the signatures of thinking and for encrypted reasoning.
//
// The key is no secret and the same in every server, so that a conversation goes on after a restart.

import { createHmac } from 'node:crypto';

const KEY = 'rehearsal';

/** The same text always has the same seal. */
export function sealOf(text: string): string {
  const digest = hmac(text);
  return `${digest}.${hmac(digest)}`;
}

/** True for anything that sealOf has made, of whatever text. */
export function isSeal(seal: string): boolean {
  const [digest, check] = seal.split('.');
  return digest !== undefined && check === hmac(digest);
}

function hmac(text: string): string {
  return createHmac('sha256', KEY).update(text).digest('base64url');
}
