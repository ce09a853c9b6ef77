// The published bundle serves the same page, from its own files and without the source.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pageAsset, STILL } from '@drover/server/page/assets';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../support/agent.ts';
import { bundleInto } from '../../support/bundle.ts';
import { inBrowser } from '../../support/serve/chromium.ts';
import { PageDesk } from '../../support/serve/page-desk.ts';
import { runSight, untilState } from '../../support/serve/page-sight.ts';
import { planned, submits, writes } from '../../support/run/run-desk.ts';

inBrowser('the page of the bundle', (open) => {
  test('the bundled page equals the source, in one module, and shows a source run', async () => {
    const folder = await temporaryFolder();
    const dist = join(folder, 'dist');
    await bundleInto(dist);
    const desk = await PageDesk.open(
      planned({ t: { title: 'One file', answers: [writes('b', 'b\n'), submits('Done.')] } }),
    );
    onTestFinished(() => desk.close());
    const { end } = await desk.run.run(['run', 'A file', '--yes']);
    const home = join(folder, 'home');
    await mkdir(home);
    await cp(desk.run.home, home, { recursive: true });
    const { url, tokenFile } = await served(dist, { cwd: desk.run.repository, home });

    const { page, complaints } = await open(`${url}/#/runs/${end.run}`, {
      token: readFileSync(tokenFile, 'utf8').trim(),
    });
    await untilState(page, 'Done');
    expect((await runSight(page)).tasks).toEqual([['One file', 'landed', 'Done.']]);
    const loaded = await page.evaluate<string[]>(
      `performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname).filter((path) => path.startsWith('/page/'))`,
    );
    expect([...new Set(loaded)].toSorted()).toEqual(
      ['main.js', ...STILL.slice(1)].map((name) => `/page/${name}`).toSorted(),
    );
    for (const name of STILL) {
      const bytes = await (await fetch(`${url}/page/${name}`)).text();
      expect([name, bytes]).toEqual([name, pageAsset(`/page/${name}`)?.body]);
    }
    expect((await fetch(`${url}/page/server/src/page/view/main.js`)).status).toBe(404);
    expect(complaints).toEqual([]);
  });
});

type Place = { readonly cwd: string; readonly home: string };
type Told = { readonly url: string; readonly tokenFile: string };

async function served(dist: string, { cwd, home }: Place): Promise<Told> {
  const child = spawn(process.execPath, [join(dist, 'drover.cjs'), 'serve', '--port', '0', '--json'], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: home, DROVER_HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    const gone = once(child, 'close');
    child.kill('SIGTERM');
    await gone;
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return JSON.parse(line.toString()) as Told;
}
