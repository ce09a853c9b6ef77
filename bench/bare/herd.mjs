// The floor for a run: eight agent loops in one process, with nothing but fetch and spawn. No plan, no
// workspaces, no merge, no journal.

import { agentLoop } from './loop.mjs';

await Promise.all(Array.from({ length: 8 }, (_, at) => agentLoop(`bare-${at + 1} go`)));
