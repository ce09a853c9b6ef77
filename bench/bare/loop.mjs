// The floor: an agent loop with nothing but fetch and spawn. Asks, runs the shell calls it is given, asks
// again until there are none, and prints each answer once, whole: a line for every delta would more than
// double its CPU, and make drover look good for batching them. No checks, no retries, no history rules.

import { spawn } from 'node:child_process';

const tools = [
  {
    name: 'shell',
    description: 'Run a command.',
    input_schema: { type: 'object', properties: { command: { type: 'string' } } },
  },
];

export async function agentLoop(prompt) {
  const messages = [{ role: 'user', content: prompt }];
  for (;;) {
    const response = await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': 'x', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model: 'any', max_tokens: 8192, stream: true, tools, messages }),
    });
    const content = await read(response.body);
    messages.push({ role: 'assistant', content });
    process.stdout.write(`${JSON.stringify(content)}\n`);
    const calls = content.filter((block) => block.type === 'tool_use');
    if (calls.length === 0) break;
    messages.push({ role: 'user', content: await Promise.all(calls.map(run)) });
  }
}

async function read(body) {
  const blocks = [];
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    const frames = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = frames.pop();
    for (const frame of frames) {
      const event = JSON.parse(frame.slice(frame.indexOf('data: ') + 6));
      if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block, json: '' };
      if (event.type !== 'content_block_delta') continue;
      const block = blocks[event.index];
      if (event.delta.type === 'text_delta') block.text += event.delta.text;
      if (event.delta.type === 'input_json_delta') block.json += event.delta.partial_json;
    }
  }
  return blocks.map(({ json, ...block }) =>
    block.type === 'tool_use' ? { ...block, input: JSON.parse(json || '{}') } : block,
  );
}

function run(call) {
  return new Promise((resolve) => {
    const child = spawn('bash', ['-c', call.input.command], { stdio: ['ignore', 'pipe', 'pipe'] });
    const output = [];
    child.stdout.on('data', (data) => output.push(data));
    child.stderr.on('data', (data) => output.push(data));
    child.on('close', () =>
      resolve({ type: 'tool_result', tool_use_id: call.id, content: Buffer.concat(output).toString() || 'ok' }),
    );
  });
}
