// The result of a call, as a server gave it, becomes output for the model.
//
// Guarantees
//   1. Text, images and resources are taken; any other content is named, and never makes the call fail.
//   2. Text and images are bounded here, before the output of every tool is bounded once more.

import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import type { ImagePart } from '@drover/protocol/messages';
import type { ToolOutput } from '@drover/core/tools/tool';

const TEXT_CHARS_MAX = 2_000_000;
const PARTS_MAX = 1_000;
const IMAGES_MAX = 8;
const IMAGE_CHARS_MAX = 7_000_000; // of base64
const MEDIA_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** `given` is the `result` of a `tools/call`. */
export function cleanMcpResult(given: JsonObject): ToolOutput {
  const content = Array.isArray(given['content']) ? given['content'] : [];
  const parts = content.slice(0, PARTS_MAX).map(cleanResultPart);
  if (content.length > PARTS_MAX) parts.push({ text: `[${content.length - PARTS_MAX} more parts were left out]` });
  const images = parts.flatMap((part) => ('image' in part ? [part.image] : []));
  const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []));
  if (images.length > IMAGES_MAX) texts.push(`[${images.length - IMAGES_MAX} more images were left out]`);
  const structured = given['structuredContent'];
  // By the protocol, text repeats what is structured; only a server without text has it there alone.
  if (content.length === 0 && structured !== undefined) texts.push(JSON.stringify(structured));
  return {
    output: texts.join('\n').slice(0, TEXT_CHARS_MAX),
    ...(given['isError'] === true && { isError: true }),
    ...(images.length > 0 && { images: images.slice(0, IMAGES_MAX) }),
  };
}

type Part = { readonly text: string } | { readonly image: ImagePart };

function cleanResultPart(given: Json): Part {
  if (!isJsonObject(given)) return leftOutOfResult('content that is no object');
  switch (given['type']) {
    case 'text':
      return { text: cleanResultString(given['text']) };
    case 'image':
      return cleanResultImage(given);
    case 'resource':
      return { text: cleanResourceText(given['resource']) };
    case 'resource_link':
      return { text: `[resource ${cleanResultString(given['uri'])}: ${cleanResultString(given['name'])}]` };
    default:
      return leftOutOfResult(`content of type ${JSON.stringify(given['type'] ?? null).slice(0, 60)}`);
  }
}

function cleanResultImage({ data, mimeType }: JsonObject): Part {
  if (typeof mimeType !== 'string' || !MEDIA_TYPES.has(mimeType))
    return leftOutOfResult(`an image of type ${JSON.stringify(mimeType ?? null).slice(0, 60)}`);
  if (typeof data !== 'string' || data.length > IMAGE_CHARS_MAX || !BASE64.test(data))
    return leftOutOfResult('an image that is too large or is not base64');
  return { image: { type: 'image', mediaType: mimeType, data } };
}

function cleanResourceText(resource: Json | undefined): string {
  if (!isJsonObject(resource)) return '[a resource without content]';
  const { uri, text } = resource;
  return typeof text === 'string' ? text : `[resource ${cleanResultString(uri)} is binary, and was left out]`;
}

function leftOutOfResult(what: string): Part {
  return { text: `[${what} was left out]` };
}

function cleanResultString(given: Json | undefined): string {
  return typeof given === 'string' ? given : '';
}
