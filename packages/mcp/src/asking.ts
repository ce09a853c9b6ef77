// A question of a server to the user (elicitation) goes the way of every question: the user agrees or declines, and
// then fills in the fields one after the other. The user's words go to the server alone, and into no event.
//
// A form that cannot be shown is declined, and so is any question without a terminal; the user is told.

import type { ServedAgent } from '@drover/core/tools/served/tool-servers';
import type { ServedCall } from '@drover/core/tools/served/served';
import { newId } from '@drover/core/ids';
import type { AskedField } from '@drover/protocol/events';
import { type Field, fieldsOf, type FieldValue, readField } from './form.ts';
import { cleanVisibleText } from './hostile/listed-tool.ts';
import type { Answered, Asked } from './sdk/connect.ts';

const WORDS_CHARS_MAX = 1_000;
const TRIES_MAX = 5;

export function askUserForMcpServer(
  agent: ServedAgent,
  call: ServedCall,
): (asked: Asked, signal: AbortSignal) => Promise<Answered> {
  return async ({ message, schema }, signal) => {
    const questions = new ServerQuestions(agent, call, cleanVisibleText(message, WORDS_CHARS_MAX));
    const fields = fieldsOf(schema);
    return fields === undefined
      ? questions.decline('asks for fields that drover does not know')
      : questions.fill(fields, signal);
  };
}

type Given = { readonly words: string } | { readonly action: 'decline' | 'cancel' };

class ServerQuestions {
  readonly #agent: ServedAgent;
  readonly #call: ServedCall;
  readonly #words: string;

  constructor(agent: ServedAgent, call: ServedCall, words: string) {
    this.#agent = agent;
    this.#call = call;
    this.#words = words;
  }

  decline(what: string): Answered {
    const message = `the MCP server ${this.#call.server} ${what}, and was declined: ${this.#words}`;
    this.#agent.emit({ type: 'warning', message });
    return { action: 'decline' };
  }

  async fill(fields: readonly Field[], signal: AbortSignal): Promise<Answered> {
    const lone = fields.length === 1 && fields[0]?.asked.kind === 'yes or no' ? fields[0] : undefined;
    const lines = lone === undefined ? fields.map(fieldLine) : [`${lone.asked.name}: true`];
    const agreed = await this.#ask({ lines }, signal);
    if ('action' in agreed) return agreed;
    if (lone !== undefined) return { action: 'accept', content: { [lone.key]: true } };
    const content: Record<string, FieldValue> = {};
    for (const field of fields) {
      const given = await this.#field(field, signal);
      if ('action' in given) return given;
      if (given.value !== undefined) content[field.key] = given.value;
    }
    return { action: 'accept', content };
  }

  async #field(
    field: Field,
    signal: AbortSignal,
  ): Promise<{ readonly value?: FieldValue } | { readonly action: 'decline' | 'cancel' }> {
    let mistake: string | undefined;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const lines = [...(mistake === undefined ? [] : [`${mistake}.`]), fieldLine(field)];
      const given = await this.#ask({ lines, field: field.asked }, signal);
      if ('action' in given) return given;
      const read = readField(field, given.words);
      if (!('mistake' in read)) return read;
      mistake = read.mistake;
    }
    this.decline(`got no answer for ${field.asked.name} in ${TRIES_MAX} tries`);
    return { action: 'decline' };
  }

  async #ask(
    { lines, field }: { readonly lines: readonly string[]; readonly field?: AskedField },
    signal: AbortSignal,
  ): Promise<Given> {
    const { label, server, tool, args } = this.#call;
    const requestId = newId('ask');
    const subject = [`${server}.${tool} asks: ${this.#words}`, ...lines].join('\n');
    const why = `the MCP server ${server} asks you`;
    const shown = { requestId, subject, why, ...(field && { field }) };
    this.#agent.emit({ type: 'permission_request', ...shown, ...label });
    const answer = await this.#agent.question({ ...shown, tool: label.name, input: args, label }, signal);
    if (answer === undefined) return { action: 'cancel' };
    const { words = '', ...decision } = answer;
    const alone = `${why} "${this.#words}", and there is no terminal to answer on`;
    const told = decision.by === 'nobody' ? { ...decision, reason: alone } : decision;
    this.#agent.emit({ type: 'permission_decision', requestId, ...told, ...label });
    if (!decision.allowed) return { action: decision.by === 'cancel' ? 'cancel' : 'decline' };
    return { words };
  }
}

const KINDS = {
  text: 'text',
  number: 'number',
  'yes or no': 'yes or no',
  choice: 'one',
  choices: 'several, with commas',
} as const;

function fieldLine({ asked: { name, about, kind, choices, default: fallback, required } }: Field): string {
  const facts = [
    KINDS[kind],
    ...(required ? [] : ['optional']),
    ...(fallback === undefined ? [] : [`default ${fallback}`]),
  ];
  const listed = (choices ?? []).map((each, at) => `${at + 1} ${each}`).join(', ');
  return `${name}${about === undefined ? '' : ` (${about})`}: ${facts.join(', ')}${listed === '' ? '' : ` of ${listed}`}`;
}
