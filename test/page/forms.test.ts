// A form of an MCP server on the page.

import { expect, test } from 'vitest';
import { temporaryFolder } from '../cli/fake-io.ts';
import { ADA, askingFlags } from '../support/mcp/asking.ts';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';
import { untilState } from '../support/serve/page-sight.ts';
import { calls, planned, submits } from '../support/run/run-desk.ts';

inBrowser('questions of MCP servers', (open) => {
  test('a user fills a form in, field by field', async () => {
    const script = planned({ tidy: { title: 'Tidy', answers: [calls('mcp__remote__ask', {}), submits('Tidy.')] } });
    const desk = await pageDesk(script, { argv: await askingFlags(await temporaryFolder()) });
    const { id } = await desk.client.startRun({ goal: 'Tidy', workers: 0 });
    const { page, complaints } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await page.locator('.question', { hasText: 'Who are you?' }).waitFor();
    await page.getByRole('button', { name: /^Allow once/ }).click();
    const name = page.getByLabel('Value of name');
    await name.fill('Ada');
    const card = page.locator('.question');
    expect(await card.getByRole('button').allTextContents()).toEqual(['Send', 'Decline']);
    await card.getByRole('button', { name: /^Send/ }).click();
    await page.getByLabel('Value of age').waitFor();
    await card.getByRole('button', { name: /^Send/ }).click();
    await untilState(page, 'Done');
    const told = desk.run.server.requests.filter(({ rawBody }) => rawBody.includes(JSON.stringify(ADA).slice(1, -1)));
    expect(told.length).toBeGreaterThan(0);
    expect(complaints).toEqual([]);
  });
});
