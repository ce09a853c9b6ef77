// Redacts drover's own secrets in requests, at the one place that every request passes: the provider.
//
// Guarantees
//   1. No text of a request holds one of the values: system prompt, instructions, user prompts, tool results, tool
//      descriptions, arguments of calls.
//   2. The same request always gives the same bytes, so that the provider's cache still hits.
//   3. All else stays as it is: tokens in a user's files, images, and payloads that the provider sealed (`native`).
//
// Workers in threads know no key. The thread that knows it sends their requests, through the same provider.

import type { Json } from '@drover/protocol/json';
import type { ModelRequest, RequestMessage, RequestPart } from '@drover/protocol/model';
import type { Provider } from '../model/provider.ts';
import { Redactor } from './redactor.ts';
import { isSecretWorthHiding } from './secret-values.ts';

/** Wraps a provider so that it never sends one of these values. */
export function requestWithoutSecrets(provider: Provider, values: readonly string[]): Provider {
  const secrets = values.filter(isSecretWorthHiding);
  if (secrets.length === 0) return provider;
  const redactor = new Redactor(secrets, 'values only');
  return { ...provider, stream: (request, signal) => provider.stream(redactRequest(request, redactor), signal) };
}

function redactRequest(request: ModelRequest, redactor: Redactor): ModelRequest {
  return {
    ...request,
    system: redactor.text(request.system),
    tools: redactor.value(request.tools as unknown as Json) as unknown as ModelRequest['tools'],
    messages: request.messages.map((message) => redactRequestMessage(message, redactor)),
  };
}

function redactRequestMessage(message: RequestMessage, redactor: Redactor): RequestMessage {
  if (message.role === 'assistant')
    return { ...message, content: message.content.map((part) => redactRequestPart(part, redactor)) };
  return {
    ...message,
    results: message.results.map((result) => ({ ...result, output: redactor.text(result.output) })),
    content: message.content.map((part) => (part.type === 'text' ? { ...part, text: redactor.text(part.text) } : part)),
  };
}

/** A part with a sealed payload goes back unchanged: the provider refuses another text under its signature. */
function redactRequestPart(part: RequestPart, redactor: Redactor): RequestPart {
  if (part.native !== undefined || part.type === 'native') return part;
  return part.type === 'tool_call'
    ? { ...part, args: redactor.value(part.args) }
    : { ...part, text: redactor.text(part.text) };
}
