// Looking into base64 without knowing where it begins.
//
// Base64 writes three bytes as four characters, so a text can appear in it in three ways, depending on
// how many bytes stand before it in its group. For each way some characters depend on that text
// alone; they can be searched for, and from there the rest can be decoded in place.

const SCRATCH_BYTES = 1_024;

const scratch = Buffer.alloc(SCRATCH_BYTES); // decoding runs for every suspect, so it must not allocate
const values = base64Values('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', '+-', '/_');

/** The part that every base64 text of these bytes contains, at each offset and in both alphabets. */
export function base64Forms(value: string): string[] {
  const bytes = Buffer.from(value).toString('latin1');
  return [...new Set([0, 1, 2].flatMap((shift) => bothBase64Alphabets(base64Core(bytes, shift))))];
}

/** The base64 characters that depend on these bytes alone, when `shift` other bytes precede them in their group. */
export function base64Core(bytes: string, shift: number): string {
  const length = shift + bytes.length;
  return btoa(bytes.padStart(length, '\0')).slice(Math.ceil((shift * 8) / 6), Math.floor((length * 8) / 6));
}

export function bothBase64Alphabets(standard: string): string[] {
  const inAddresses = standard.replaceAll('+', '-').replaceAll('/', '_');
  return inAddresses === standard ? [standard] : [standard, inAddresses];
}

/**
 * Decodes base64 from the start of a group. Writes the known anchor at `at`, because the first characters of its group
 * may be missing or belong to other text.
 */
export function decodeBase64Around(
  text: string,
  stretch: { readonly from: number; readonly end: number },
  known: { readonly anchor: string; readonly at: number },
): string {
  const { from, end } = stretch;
  const length = Math.min(SCRATCH_BYTES - 3, Math.floor(((end - from) * 3) / 4));
  for (let at = from, byte = 0; byte < length; at += 4, byte += 3) {
    const group =
      (base64SixBits(text, at) << 18) |
      (base64SixBits(text, at + 1) << 12) |
      (base64SixBits(text, at + 2) << 6) |
      base64SixBits(text, at + 3);
    scratch[byte] = group >> 16;
    scratch[byte + 1] = group >> 8;
    scratch[byte + 2] = group;
  }
  for (let at = 0; at < known.anchor.length; at++) scratch[known.at + at] = known.anchor.charCodeAt(at);
  return scratch.toString('latin1', 0, Math.max(length, known.at + known.anchor.length));
}

function base64SixBits(text: string, at: number): number {
  return values[text.charCodeAt(at)] ?? 0;
}

function base64Values(common: string, ...last: readonly string[]): Uint8Array {
  const table = new Uint8Array(128);
  for (let at = 0; at < common.length; at++) table[common.charCodeAt(at)] = at;
  for (const [index, chars] of last.entries()) {
    for (let at = 0; at < chars.length; at++) table[chars.charCodeAt(at)] = common.length + index;
  }
  return table;
}
