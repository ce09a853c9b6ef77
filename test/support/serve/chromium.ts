// A real browser for tests of the page: the system's Chromium, one per test file.
//
// Without one those tests are skipped, with a line on stderr; .ci/run installs it.

import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest';
import { findProgram } from '../process/programs.ts';

const TEST_MS_MAX = 120_000; // browsers are slow on a busy machine
const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const CHROMIUM = findProgram(NAMES);

export type Seen = {
  readonly page: Page;
  /** The page's complaints: errors, policy violations, and requests to other origins. */
  readonly complaints: readonly string[];
};

export type Look = {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  /** The tab's initial session storage. */
  readonly token?: string;
  /** Permissions that the user gave the page. */
  readonly permissions?: readonly string[];
  /** Runs in the page before its own code. */
  readonly before?: string;
};

export type Opening = (url: string, look?: Look) => Promise<Seen>;

/** Tests in a browser; `open` opens a page in a fresh profile that is removed after the test. */
export function inBrowser(title: string, tests: (open: Opening) => void): void {
  if (CHROMIUM === undefined)
    process.stderr.write(`\n*** LEFT OUT, for want of a Chromium: ${title}. Install one, or put it on the PATH.\n\n`);
  describe.runIf(CHROMIUM !== undefined)(title, { timeout: TEST_MS_MAX }, () => {
    let browser: Browser | undefined;
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args: ARGS });
    }, TEST_MS_MAX);
    afterAll(() => browser?.close());
    tests(async (url, look = {}) => {
      if (browser === undefined) throw new Error('the browser is not there yet');
      return opened(browser, url, look);
    });
  });
}

async function opened(browser: Browser, url: string, look: Look): Promise<Seen> {
  const { width = 1440, height = 900, dark = false, token, permissions = [], before } = look;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light' });
  onTestFinished(() => context.close());
  context.setDefaultTimeout(TEST_MS_MAX);
  await context.grantPermissions(permissions);
  if (before !== undefined) await context.addInitScript(before);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) complaints.push(`asked: ${request.url()}`);
  });
  if (token !== undefined) await page.addInitScript(`sessionStorage.setItem('drover.token', ${JSON.stringify(token)})`);
  await page.goto(url);
  return { page, complaints };
}
