// Seals: stand-ins for the signatures of thinking and for encrypted reasoning.
//
// The key is public and the same in every server, so a conversation continues after a restart.

import { createHmac } from 'node:crypto';

const KEY = 'rehearsal';

/** Returns the same seal for the same text. */
export function sealOfAnswer(text: string): string {
  const digest = answerSealHmac(text);
  return `${digest}.${answerSealHmac(digest)}`;
}

/** True for any result of sealOf. */
export function isAnswerSeal(seal: string): boolean {
  const [digest, check] = seal.split('.');
  return digest !== undefined && check === answerSealHmac(digest);
}

function answerSealHmac(text: string): string {
  return createHmac('sha256', KEY).update(text).digest('base64url');
}
