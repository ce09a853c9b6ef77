// A program: the hostile MCP server, with the fault that its argument names. `stubborn` ends only by KILL.

import { createInterface } from 'node:readline';
import { type HostileFault, startHostileMcpServer } from '@drover/rehearsal/mcp/hostile-server';

const fault = (process.argv[2] ?? 'none') as HostileFault;
const read = startHostileMcpServer(fault, {
  write: (text) => void process.stdout.write(text),
  complain: (text) => void process.stderr.write(text),
  exit: (code) => process.exit(code),
});
createInterface({ input: process.stdin }).on('line', read);
if (fault === 'stubborn') {
  process.on('SIGTERM', () => undefined);
  setInterval(() => undefined, 60_000);
} else process.stdin.on('end', () => process.exit(0));
