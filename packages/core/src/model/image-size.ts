// Image size: reads width and height from the first bytes of a PNG, JPEG, GIF or WebP; undefined for other formats.

export type ImageSize = { readonly width: number; readonly height: number };

// A JPEG may hold metadata before its size; this many bytes are searched.
const HEAD_BYTES_MAX = 256 * 1024;

export function modelImageSize(base64: string): ImageSize | undefined {
  const bytes = Buffer.from(base64.slice(0, Math.ceil((HEAD_BYTES_MAX * 4) / 3)), 'base64');
  if (bytes.length < 30) return undefined;
  const magic = bytes.toString('latin1', 0, 12);
  if (magic.startsWith('\x89PNG')) return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (magic.startsWith('GIF8')) return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (magic.startsWith('RIFF') && magic.endsWith('WEBP')) return modelWebpSize(bytes);
  if (magic.startsWith('\xff\xd8')) return modelJpegSize(bytes);
  return undefined;
}

function modelWebpSize(bytes: Buffer): ImageSize | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
    }
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  }
  return undefined;
}

function modelJpegSize(bytes: Buffer): ImageSize | undefined {
  for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1] ?? 0;
    // Frame headers C0–CF hold the size, except C4, C8 and CC, which have other meanings.
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
