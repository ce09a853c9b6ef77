// The published bundle serves the same page, from its own files and without the source. Code that
// few pages need is loaded when it is used.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { pageAsset, STILL } from '@drover/server/page/assets';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../support/agent.ts';
import { bundleInto } from '../../support/bundle.ts';
import { inBrowser } from '../../support/serve/chromium.ts';
import { PageDesk } from '../../support/serve/page-desk.ts';
import { runSight, untilState } from '../../support/serve/page-sight.ts';
import { planned, submits, writes } from '../../support/run/run-desk.ts';

inBrowser('the page of the bundle', (open) => {
  test('the bundled page equals the source, stays small, and shows a source run', async () => {
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
    // The answer has Markdown, and no code: no language is loaded.
    const files = ['main.js', 'part-marked.esm.js', ...STILL.slice(1).filter((name) => name !== 'icon-asking.svg')];
    expect([...new Set(loaded)].toSorted()).toEqual(files.map((name) => `/page/${name}`).toSorted());
    const sizes = Object.fromEntries(
      await Promise.all(
        ['main.js', 'part-marked.esm.js', 'part-core.js', 'part-typescript.js'].map(async (name) => {
          const body = Buffer.from(await (await fetch(`${url}/page/${name}`)).arrayBuffer());
          return [name, gzipSync(body).length] as const;
        }),
      ),
    );
    process.stderr.write(`compressed sizes of the page: ${JSON.stringify(sizes)}\n`);
    for (const [name, bytes] of Object.entries(sizes)) expect([name, bytes < BYTES_MAX]).toEqual([name, true]);
    for (const name of STILL) {
      const bytes = await (await fetch(`${url}/page/${name}`)).text();
      expect([name, bytes]).toEqual([name, pageAsset(`/page/${name}`)?.body]);
    }
    expect((await fetch(`${url}/page/server/src/page/view/main.js`)).status).toBe(404);
    expect(complaints).toEqual([]);
  });
});

const BYTES_MAX = 64 * 1024; // compressed, of one module

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
