// The app of `drover serve` without a socket: its own host with the settings of a folder, and bounds that a test
// chooses.

import { createServerApp, type Bounds } from '@drover/server/app';
import { DroverClient } from '@drover/client/client';
import { onTestFinished } from 'vitest';
import { openServeHost } from '../../../bin/serve/host.ts';
import type { Diagnostics } from '../../../bin/diagnostics.ts';
import type { ServeWishes } from '../../../bin/serve/wishes.ts';
import { openServerHub } from '../../../bin/mcp/open-servers.ts';
import { openContainment } from '../../../bin/sandbox/containment.ts';
import { FakeIo, type Given } from '../../cli/fake-io.ts';

const ADDRESS = '127.0.0.1:4700';
const TOKEN = 'a-token-that-only-tests-know-0123456789';

type Served = {
  readonly given: Given & { readonly cwd: string };
  readonly home: string;
  readonly root: string; // the folder of the project
  readonly wishes: Partial<ServeWishes>;
  readonly bounds?: Partial<Bounds>;
};

export async function servedApp({ given, home, root, wishes, bounds = {} }: Served): Promise<DroverClient> {
  const { io } = new FakeIo(given);
  const wish = { mode: 'off', net: [], writable: [] } as const;
  const containment = await openContainment(wish, { io, state: home, root, project: root });
  const diagnostics: Diagnostics = {
    diagnose: () => undefined,
    isDetailed: false,
    about: () => diagnostics,
    close: async () => undefined,
  };
  const hub = openServerHub(home, diagnostics.diagnose);
  onTestFinished(() => hub.close());
  const typed = {
    model: undefined,
    rules: [],
    yes: true,
    steps: undefined,
    budget: undefined,
    mcp: [],
    hosts: undefined,
  };
  const host = openServeHost(
    { ...typed, containment, hub, diagnostics, io, ...wishes },
    { root, version: '0.0.0-test' },
  );
  const app = createServerApp(host, { token: TOKEN, hosts: () => [ADDRESS], bounds });
  onTestFinished(() => app.close());
  const fetch = (url: string, init: RequestInit): Promise<Response> => {
    const request = new Request(url, init);
    request.headers.set('host', ADDRESS);
    return app.fetch(request);
  };
  return new DroverClient({ baseUrl: `http://${ADDRESS}`, token: TOKEN, fetch });
}
