// The floor for one agent.

import { agentLoop } from './loop.mjs';

await agentLoop(process.argv[2] ?? 'go');
