// Access to the page, and how the page gets its token.

import { createServerApp } from '@drover/server/app';
import { httpHostsAt } from '@drover/server/http/guard';
import { listenForHttp } from '@drover/server/http/listen';
import { pageAsset } from '@drover/server/page/assets';
import { Tickets } from '@drover/server/http/ticket';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/agent.ts';
import { inBrowser } from '../support/serve/chromium.ts';
import { hostOf, TOKEN } from '../support/serve/serve-host.ts';

/** A server with a page and no runs. */
async function empty(): Promise<{ readonly url: string; readonly ticket: string }> {
  const home = await temporaryFolder();
  const tickets = new Tickets();
  let hosts: readonly string[] = [];
  const host = hostOf({ home, root: home, modelUrl: '', tools: [], asks: [], diagnose: () => undefined });
  const app = createServerApp(host, { token: TOKEN, hosts: () => hosts, tickets, page: pageAsset });
  const listening = await listenForHttp(app, { address: '127.0.0.1', port: 0 });
  onTestFinished(() => listening.close());
  hosts = httpHostsAt('127.0.0.1', listening.port);
  return { url: listening.url, ticket: tickets.issue() };
}

test('every file of the page is served with type and policy, and no other file is', async () => {
  const { url } = await empty();
  const get = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return { response, text: await response.text() };
  };
  const { response, text } = await get('/');
  expect(
    Object.fromEntries([...response.headers].filter(([name]) => /policy|content-type|cache|dns/.test(name))),
  ).toEqual({
    'cache-control': 'no-cache',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
      "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    'content-type': 'text/html; charset=utf-8',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'x-dns-prefetch-control': 'off',
  });
  const named = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path = '']) => path);
  const types = await Promise.all(named.map(async (path) => (await get(path)).response.headers.get('content-type')));
  expect(new Set(types)).toEqual(
    new Set(['image/svg+xml', 'text/css; charset=utf-8', 'text/javascript; charset=utf-8']),
  );

  const foreign = ['/page/', '/page/assets.ts', '/page/server/src/app.js', '/page/../app.ts', '/page/%2e%2e/app.ts'];
  const found = await Promise.all([...foreign, '/page/constructor', '/index.html'].map(async (path) => get(path)));
  expect(found.map((each) => each.response.status)).toEqual([404, 404, 404, 404, 404, 404, 404]);
});

inBrowser('signing in', (open) => {
  test('a missing or wrong token is refused, the right one opens, and can be forgotten', async () => {
    const { url } = await empty();
    const { page, complaints } = await open(url);
    await page.getByLabel('Token').fill('not-it');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('alert').innerText()).toMatch(/^the token is missing or wrong/);

    await page.getByLabel('Token').fill(TOKEN);
    await page.keyboard.press('Enter');
    await page.getByText('Nothing here yet.').waitFor();
    await page.reload();
    await page.getByText('Nothing here yet.').waitFor();

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    await page.reload();
    await page.getByLabel('Token').waitFor();
    // The browser's console line for every refused request.
    expect(complaints.filter((each) => !each.includes('status of 401'))).toEqual([]);
  });

  test('an unknown address says so', async () => {
    const { url } = await empty();
    const { page, complaints } = await open(`${url}/#/runs/run_${'0'.repeat(32)}`, { token: TOKEN });
    await page.getByRole('heading', { name: 'This is not here' }).waitFor();
    expect(await page.getByRole('button', { name: 'Resume' }).count()).toBe(0);
    await page.evaluate(`location.hash = '#/%'`);
    await page.getByText('Nothing chosen').waitFor();
    expect(complaints.filter((each) => !each.includes('status of 404'))).toEqual([]);
  });

  test('the address with a ticket opens once, and does not store it', async () => {
    const { url, ticket } = await empty();
    const { page } = await open(`${url}/#ticket=${ticket}`);
    await page.getByText('Nothing here yet.').waitFor();
    expect(page.url()).toBe(`${url}/#/`);

    const again = await open(`${url}/#ticket=${ticket}`);
    await again.page.getByRole('alert').waitFor();
    expect(await again.page.getByRole('alert').innerText()).toBe('This address has been used, or is too old.');
    expect(again.page.url()).toBe(`${url}/#/`);
  });
});
