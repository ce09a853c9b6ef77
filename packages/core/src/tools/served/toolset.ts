// The tool definitions that an agent's requests declare.
//
// Guarantees
//   1. The definitions an agent begins with never change and stay first, byte for byte.
//   2. Deferred definitions are appended in the order in which the conversation found them. None is removed.

import { conversationCodePoints } from '../../conversation/conversation.ts';
import { promptUtf8Bytes } from '../../conversation/prompt-bound.ts';
import { isJsonObject } from '@drover/protocol/json';
import type { CallPart, Message, ToolDefinition } from '@drover/protocol/messages';
import { toolDefinitionOf, type Tool } from '../tool.ts';
import { FIND_TOOLS, foundServedTools } from './find-tools.ts';

type Deferred = Parameters<typeof foundServedTools>[0][number] & { readonly definition: ToolDefinition };

export class Toolset {
  readonly #base: readonly ToolDefinition[];
  readonly #deferred: readonly Deferred[];
  readonly #found = new Map<string, ToolDefinition>();
  #definitions: readonly ToolDefinition[];
  #chars = 0;
  #bytes = 0;

  /** `given`: the definitions to begin with, byte for byte. Default: those of all tools that are not deferred. */
  constructor(tools: readonly Tool[], given: readonly ToolDefinition[] | undefined) {
    this.#base = given ?? tools.filter(({ served }) => served?.isDeferred !== true).map(toolDefinitionOf);
    this.#deferred = tools.flatMap(({ name, description, schema, served }) =>
      served?.isDeferred === true ? [{ name, description, ...served, definition: { name, description, schema } }] : [],
    );
    this.#definitions = this.#base;
    this.#measure();
  }

  get definitions(): readonly ToolDefinition[] {
    return this.#definitions;
  }

  get chars(): number {
    return this.#chars;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Appends the deferred tools that calls in these messages have found. */
  update(messages: readonly Message[]): void {
    if (this.#deferred.length === 0) return;
    const before = this.#found.size;
    for (const { name, definition } of messages.flatMap((message) => this.#foundIn(message)))
      if (!this.#found.has(name)) this.#found.set(name, definition);
    if (this.#found.size === before) return;
    this.#definitions = [...this.#base, ...this.#found.values()];
    this.#measure();
  }

  #foundIn(message: Message): readonly Deferred[] {
    if (message.role !== 'assistant') return [];
    return message.content.flatMap((part) => (part.type === 'tool_call' ? this.#foundBy(part) : []));
  }

  /** A tool that was called without being found first counts as found. */
  #foundBy({ name, args }: CallPart): readonly Deferred[] {
    if (name !== FIND_TOOLS) return this.#deferred.filter((each) => each.name === name);
    const query = isJsonObject(args) ? args['query'] : undefined;
    return typeof query === 'string' ? foundServedTools(this.#deferred, query) : [];
  }

  #measure(): void {
    const text = JSON.stringify(this.#definitions);
    this.#chars = conversationCodePoints(text);
    this.#bytes = promptUtf8Bytes(text);
  }
}
