// The front door of the process that starts others for a run: it listens where it is told to, for as long as
// its standard input is open. As little as possible is loaded here, since being small is what it is for.

import { Socket } from 'node:net';
import { serveProcessLaunches } from '@drover/core/tools/process/launcher';

// Its parent decides when it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

serveProcessLaunches(process.argv[2] ?? '', new Socket({ fd: 0 }), () => process.exit());
