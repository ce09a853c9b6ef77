// Request bodies: reads JSON of bounded size, checks it against the route's schema, or returns a refusal.

import type { z } from 'zod';
import { Refusal, httpUnfitBody } from './problem.ts';
import { handled } from '@drover/core/promises';

const ERRORS_MAX = 20;

/** Returns the checked body, or a refusal. */
export async function readHttpBody<Body>(
  request: Request,
  schema: z.ZodType<Body>,
  bytesMax: number,
): Promise<{ readonly body: Body } | Refusal> {
  const type = request.headers.get('content-type') ?? '';
  if (!/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type.trim()))
    return new Refusal(415, 'content_type.unfit', 'the body must be application/json', {
      detail: type === '' ? 'it has no content type' : `it is ${type.slice(0, 100)}`,
    });
  const bytes = await bytesOfHttpBody(request, bytesMax);
  if (bytes instanceof Refusal) return bytes;
  const json = parseHttpBody(bytes);
  if (json instanceof Refusal) return json;
  const checked = schema.safeParse(json.value);
  return checked.success ? { body: checked.data } : httpUnfitBody(errorsInHttpBody(checked.error));
}

async function bytesOfHttpBody(request: Request, bytesMax: number): Promise<Uint8Array | Refusal> {
  const tooLarge = new Refusal(413, 'body.too_large', `a body may have at most ${bytesMax} bytes`);
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) return tooLarge;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = request.body?.getReader();
  try {
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
      bytes += read.value.length;
      if (bytes > bytesMax) {
        // The client may keep sending; the server stops reading.
        if (reader !== undefined) handled(reader.cancel());
        return tooLarge;
      }
      chunks.push(read.value);
    }
  } catch (error) {
    // The connection broke or was too slow, so the client will not read this refusal.
    return new Refusal(400, 'body.cut', 'the body did not arrive whole', { detail: String(error).slice(0, 200) });
  }
  return Buffer.concat(chunks);
}

function parseHttpBody(bytes: Uint8Array): { readonly value: unknown } | Refusal {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return { value };
  } catch (error) {
    const detail = error instanceof SyntaxError ? error.message.slice(0, 200) : 'it is not UTF-8';
    return new Refusal(400, 'body.malformed', 'the body is not JSON', { detail });
  }
}

function errorsInHttpBody({ issues }: z.ZodError): readonly { readonly path: string; readonly message: string }[] {
  const errors = issues.flatMap((issue) => {
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : undefined;
    const at = (path: readonly PropertyKey[]): string => path.map(String).join('.');
    if (keys === undefined) return [{ path: at(issue.path), message: issue.message }];
    return keys.map((key) => ({ path: at([...issue.path, key]), message: 'there is no such field' }));
  });
  return errors.slice(0, ERRORS_MAX);
}
