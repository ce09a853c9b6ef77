// Photographs a run on the page of a real `drover serve`, in headless Chromium.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const VIEW = { width: 1280, height: 800 };
const BROWSER = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export type Shot = { readonly drover: string; readonly project: string; readonly home: string; readonly file: string };

export async function photographPage({ drover, project, home, file }: Shot): Promise<void> {
  const server = spawn(process.execPath, [drover, 'serve', '--port', '0', '--json', '--cwd', project], {
    env: { ...process.env, DROVER_HOME: home, ANTHROPIC_API_KEY: 'none' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = (await once(createInterface(server.stdout), 'line')) as [string];
    const { url, tokenFile } = JSON.parse(line) as { readonly url: string; readonly tokenFile: string };
    await photograph({ url, token: (await readFile(tokenFile, 'utf8')).trim(), file });
  } finally {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
}

type Sight = { readonly url: string; readonly token: string; readonly file: string };

async function photograph({ url, token, file }: Sight): Promise<void> {
  const browser = await chromium.launch({
    executablePath: BROWSER.find(existsSync) ?? '',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  });
  try {
    const page = await browser.newPage({ viewport: VIEW, deviceScaleFactor: 1 });
    await page.addInitScript(`sessionStorage.setItem('drover.token', ${JSON.stringify(token)})`);
    await page.goto(url);
    await page.locator('a.kept-link').first().click();
    await page.getByText('6 of 6').waitFor(); // the end of the journal was read
    await page.screenshot({ path: file });
  } finally {
    await browser.close();
  }
}
