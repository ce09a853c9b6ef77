// A request with an example of everything that a wire format must translate.

import type { ModelRequest } from '@drover/protocol/model';

const IMAGE = { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const;

export const REQUEST: ModelRequest = {
  model: 'model',
  system: 'You drive cattle.',
  tools: [{ name: 'read', description: 'Read a file.', schema: { type: 'object', properties: {} } }],
  messages: [
    { role: 'user', results: [], content: [{ type: 'text', text: 'go' }, IMAGE], cacheMark: false },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I look.' },
        { type: 'tool_call', id: 'call_1', name: 'read', args: { path: 'a' } },
        { type: 'tool_call', id: 'call_2', name: 'read', args: {} },
      ],
    },
    {
      role: 'user',
      results: [
        { id: 'call_1', name: 'read', output: 'text', isError: false },
        { id: 'call_2', name: 'read', output: 'no such file', isError: true, images: [IMAGE] },
      ],
      content: [{ type: 'text', text: 'and?' }],
      cacheMark: true,
    },
  ],
  outputTokensMax: 1_000,
  cacheKey: 'k'.repeat(70),
};
