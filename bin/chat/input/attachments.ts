// Images that a message names by path: with an @ in front, or a path alone on its line, as terminals paste it.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { imageTypeForReadTool } from '@drover/core/tools/read';
import type { ImagePart, TextPart, UserMessage } from '@drover/protocol/messages';
import { bestEffort } from '@drover/core/promises';

const IMAGE_BYTES_MAX = 3_932_160; // 5 MiB as base64, the limit of providers
const IMAGES_MAX = 10;
const NAMED =
  /(?:^|\s)@(\S+\.(?:png|jpe?g|gif|webp))(?=\s|$)|^[ \t]*['"]?((?:file:\/\/|\/|~\/|\.{1,2}\/)[^'"\n]*\.(?:png|jpe?g|gif|webp))['"]?[ \t]*$/gim;

/** The message as parts: its text, and the images that it names. A path without an image stays text only. */
export async function readAttachments(text: string, cwd: string): Promise<readonly (TextPart | ImagePart)[]> {
  const paths = [...text.matchAll(NAMED)].flatMap(
    ([, named, alone]) => attachmentPath(named ?? alone ?? '', cwd) ?? [],
  );
  const images = await Promise.all([...new Set(paths)].slice(0, IMAGES_MAX).map(readImageAttachment));
  return [{ type: 'text', text }, ...images.filter((image) => image !== undefined)];
}

/** The user's own words in a message; undefined for an image alone. Notes of drover stand before them. */
export function typedWords({ content }: UserMessage): TextPart | undefined {
  return content.findLast((part) => part.type === 'text');
}

/** The path; undefined for an address that names no file of this machine. */
function attachmentPath(named: string, cwd: string): string | undefined {
  if (named.startsWith('file://')) return pathInFileUrl(named);
  const plain = named.replaceAll('\\ ', ' ');
  return plain.startsWith('~/') ? resolve(homedir(), plain.slice(2)) : resolve(cwd, plain);
}

function pathInFileUrl(address: string): string | undefined {
  try {
    return fileURLToPath(address);
  } catch (error) {
    if (error instanceof Error) return undefined; // another machine, or a malformed address
    throw error;
  }
}

/** The image in a file; undefined if there is none, or it is too large. */
async function readImageAttachment(path: string): Promise<ImagePart | undefined> {
  // A file that cannot be opened is not an image, and its path stays text.
  // A pipe without a writer would block without O_NONBLOCK.
  const file = await bestEffort(open(path, constants.O_RDONLY | constants.O_NONBLOCK));
  if (file === undefined) return undefined;
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > IMAGE_BYTES_MAX) return undefined;
    const bytes = await file.readFile();
    const mediaType = imageTypeForReadTool(bytes.subarray(0, 12));
    return mediaType === undefined ? undefined : { type: 'image', mediaType, data: bytes.toString('base64') };
  } finally {
    await file.close();
  }
}
