// Images that are too large, by their bytes or by their pixels.

/** Measured on the base64 text, like the real server. */
const BYTES_MAX = 5 * 1024 * 1024;
const PIXELS_MAX = 8_000;
const MANY_IMAGES = 20;
const MANY_PIXELS_MAX = 2_000;

export type PlacedImage = { readonly at: string; readonly data: string };

type Size = { readonly width: number; readonly height: number };

export function* strictImageProblems(images: readonly PlacedImage[]): Generator<string> {
  const many = images.length > MANY_IMAGES;
  const pixelsMax = many ? MANY_PIXELS_MAX : PIXELS_MAX;
  for (const { at, data } of images) {
    if (data.length > BYTES_MAX) yield `${at}: image exceeds 5 MB maximum: ${data.length} bytes > ${BYTES_MAX} bytes`;
    const size = strictImageSize(Buffer.from(data, 'base64'));
    if (size === undefined) yield `${at}.data: Could not process image`;
    else if (Math.max(size.width, size.height) > pixelsMax)
      yield `${at}.data: At least one of the image dimensions exceed max allowed size${many ? ' for many-image requests' : ''}: ${pixelsMax} pixels`;
  }
}

/** Reads the size from the header of a PNG, GIF, WebP or JPEG; undefined for anything else. */
function strictImageSize(bytes: Buffer): Size | undefined {
  if (bytes.length < 30) return undefined;
  if (bytes.readUInt32BE(0) === 0x89504e47) return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (bytes.toString('latin1', 0, 3) === 'GIF') return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (bytes.toString('latin1', 8, 12) === 'WEBP') return strictWebpSize(bytes);
  return bytes.readUInt16BE(0) === 0xffd8 ? strictJpegSize(bytes) : undefined;
}

function strictWebpSize(bytes: Buffer): Size | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    default:
      return undefined;
  }
}

function strictJpegSize(bytes: Buffer): Size | undefined {
  for (let at = 2; at + 9 < bytes.length;) {
    const marker = bytes.readUInt16BE(at);
    // The frame headers are FFC0 to FFCF, except three that carry tables.
    const isFrame = marker >= 0xffc0 && marker <= 0xffcf && marker !== 0xffc4 && marker !== 0xffc8 && marker !== 0xffcc;
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
