// The fetch of everything that goes to a server of others: a message of more than 10 MiB ends its response.

const MESSAGE_BYTES_MAX = 10 * 1024 * 1024;
const NEWLINE = 10;

export const boundedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (response.body === null) return response;
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const body = response.body.pipeThrough(bound(isStream));
  const { status, statusText, headers } = response;
  const bounded = new Response(body, { status, statusText, headers });
  Object.defineProperty(bounded, 'url', { value: response.url });
  return bounded;
};

/** In a stream of events, each line is bounded; else the whole body is. */
function bound(isStream: boolean): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const last = isStream ? chunk.lastIndexOf(NEWLINE) : -1;
      bytes = last === -1 ? bytes + chunk.length : chunk.length - last;
      if (bytes > MESSAGE_BYTES_MAX) controller.error(new Error('the server sent a message of more than 10 MiB'));
      else controller.enqueue(chunk);
    },
  });
}
