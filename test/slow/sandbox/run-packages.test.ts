// A whole headless run with --net: a worker installs a package through the proxy, and no other host is reached.

import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits } from '../../support/run/run-desk.ts';
import { inSandbox } from '../../support/sandbox/box.ts';
import { npmRegistry } from '../../support/sandbox/registries.ts';

const shell = (command: string) => calls('shell', { command });

inSandbox('packages in a run', () => {
  test('npm install of a worker works with its host allowed, and another host is named', async () => {
    const { port, asked } = await npmRegistry();
    const from = (registry: string) => `npm install --no-audit --no-fund --fetch-retries=0 --registry ${registry}`;
    const desk = await RunDesk.with(
      planned({
        one: {
          answers: [
            shell(`${from(`http://localhost:${port}/`)} tiny-package && node -p "require('tiny-package')" > said.txt`),
            shell(`${from('http://packages.example.com/')} tiny-package@1.0.0 --prefer-online --force 2>&1`),
            shell(`curl -sS -o answer -w '%{http_code} %{time_total}' http://packages.example.com/; cat answer`),
            submits('installed'),
          ],
        },
      }),
      { 'package.json': '{"name": "app", "version": "1.0.0"}\n', '.gitignore': 'node_modules/\nanswer\n' },
    );
    const { code, end, events } = await desk.run([
      'run',
      'go',
      '--net',
      `localhost:${port}`,
      '--gate',
      'grep -q tiny said.txt',
      '--allow-red-base',
    ]);
    expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
    expect(events.filter(({ type }) => type === 'permission_request')).toEqual([]);
    expect(asked).toContain('/tiny-package/-/tiny-package-1.0.0.tgz');
    const outputs = events.flatMap((event) =>
      event.type === 'tool_execution_end' && event.name === 'shell' ? [event.output] : [],
    );
    expect(outputs[1]).toContain('packages.example.com');
    expect(outputs[2]).toContain(
      'the sandbox does not allow packages.example.com; allow it with --net packages.example.com',
    );
    const refused = events.flatMap((event) => (event.type === 'network' && !event.allowed ? [event.host] : []));
    expect(new Set(refused)).toEqual(new Set(['packages.example.com']));
  });
});
