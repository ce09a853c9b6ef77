// Makes all of a text visible: a user who approves a command must see exactly that command. Terminal colours are
// removed; other control characters and bidirectional marks are shown as escapes.

const COLOUR = /\p{Cc}\[[\d;:]*m/gu;
const UNSEEN = /(?![\n\t])\p{Cc}|\p{Bidi_Control}/gu;
const HAS_UNSEEN = new RegExp(UNSEEN, 'u');

export function visiblePageText(text: string): string {
  if (!HAS_UNSEEN.test(text)) return text;
  return text.replaceAll('\r\n', '\n').replace(COLOUR, '').replace(UNSEEN, pagePictureOfChar);
}

function pagePictureOfChar(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return code === 0x7f ? '␡' : `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}
