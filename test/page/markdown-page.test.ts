// A model's Markdown on the page: rendered, highlighted, inert, and readable while it streams.

import { expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { type PageDesk, pageDesk } from '../support/serve/page-desk.ts';
import { untilState } from '../support/serve/page-sight.ts';
import { says } from '../support/run/run-desk.ts';

const RICH = [
  '# Head',
  'Some **bold**, *slanted*, ~~gone~~ and `code` &amp; more.',
  '1. one\n   - inner\n2. two\n\n- [x] did it',
  '| Name | Size |\n|:--|--:|\n| a | 1 |',
  '> said',
  '```ts\nconst x: string = "<b>"; // note\n```',
  'See [the docs](https://example.com/a?b=c) and https://example.org/.',
].join('\n\n');

const HOSTILE = [
  '<script>hit = 1</script>',
  '<img src=x onerror="hit = 2">',
  'a <b onclick="hit = 3">b</b> <!-- c --> <iframe src="https://evil.example/">',
  '[one](javascript:hit=4) [two](data:text/html,<script>hit=5</script>) [three](vbscript:x) [four](//evil.example)',
  '[java\\\nscript](java&#10;script:hit=6) <javascript:hit=7> [five](JaVaScRiPt:hit=8 "x")',
  '![six](https://evil.example/pixel.png) ![seven](javascript:hit=9)',
  '[https://good.example/](https://evil.example/) [quote" onmouseover="hit=10](https://evil.example/"onclick="hit=11)',
  '[ref]\n\n[ref]: javascript:hit=12',
  '```"><img onerror=hit=13>\n</code></pre><script>hit = 14</script>\n```',
  '<svg><script>hit = 15</script></svg> <style>* { display: none }</style>',
  `${'>'.repeat(4_000)} deep`,
  `${'- '.repeat(3_000)}deep`,
  `${'*'.repeat(20_000)}a`,
  `${'> '.repeat(60)}sixty`,
].join('\n\n');

async function answered(desk: PageDesk): Promise<string> {
  const { id } = await desk.client.createSession({});
  await (await desk.client.session({ id })).execute('Say it');
  return `${desk.url}/#/sessions/${id}`;
}

/** The elements of the last answer, with the attributes that matter. */
const OUTLINE = `(() => {
  const outline = (node) => {
    if (node.nodeType === 3) return node.data;
    const inner = [...node.childNodes].map(outline).join('');
    if (['DIV', 'THEAD', 'TBODY', 'BUTTON'].includes(node.tagName)) return node.tagName === 'BUTTON' ? '' : inner;
    const kept = ['class', 'href', 'rel', 'target', 'start', 'data-align'].map((name) => [name, node.getAttribute(name)]);
    const marks = kept.filter(([, value]) => value !== null).map(([name, value]) => ' ' + name + '=' + value).join('');
    return '<' + node.tagName.toLowerCase() + marks + '>' + inner;
  };
  return [...[...document.querySelectorAll('.said .markdown')].at(-1).querySelectorAll(':scope > :not(.live), .live > *')].map(outline);
})()`;

inBrowser('Markdown on the page', (open) => {
  test.each([1440, 390])('an answer is rendered and highlighted at %i pixels', async (width) => {
    const desk = await pageDesk({ answers: [says(RICH)] });
    const { page, complaints } = await open(await answered(desk), { token: desk.token, width });
    await untilState(page, 'Done');
    await page.locator('.hl-keyword').waitFor();
    expect(await page.evaluate(OUTLINE)).toEqual([
      '<h3>Head',
      '<p>Some <strong>bold, <em>slanted, <del>gone and <code>code & more.',
      '<ol start=1><li><p>one<ul><li><p>inner<li><p>two',
      '<ul><li><p><span class=box>☑ did it',
      '<table><tr><th data-align=left>Name<th data-align=right>Size<tr><td data-align=left>a<td data-align=right>1',
      '<blockquote><p>said',
      '<pre class=code><code><span class=hl-keyword>const <span class=hl-attr>x: <span class=hl-built_in>string = ' +
        '<span class=hl-string>"<b>"; <span class=hl-comment>// note',
      '<p>See <a href=https://example.com/a?b=c rel=noopener noreferrer target=_blank>the docs and ' +
        '<a href=https://example.org/ rel=noopener noreferrer target=_blank>https://example.org/.',
    ]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    expect(complaints).toEqual([]);
  });

  test('hostile Markdown is shown, does nothing, and leads nowhere unasked', async () => {
    const desk = await pageDesk({ answers: [says(HOSTILE)] });
    const { page, complaints } = await open(await answered(desk), { token: desk.token });
    await untilState(page, 'Done');
    await page.getByText('sixty').waitFor();
    const links = await page.evaluate(
      `[...document.querySelectorAll('.markdown a')].map((a) => [a.textContent, a.href, a.rel])`,
    );
    const rel = 'noopener noreferrer';
    expect(links).toEqual([
      ['image: six', 'https://evil.example/pixel.png', rel],
      ['https://good.example/', 'https://evil.example/', rel],
      ['quote" onmouseover="hit=10', 'https://evil.example/%22onclick=%22hit=11', rel],
    ]);
    const text = await page.locator('.markdown').innerText();
    for (const shown of ['<script>hit = 1</script>', 'one (javascript:hit=4)', '(https://evil.example/)', '<!-- c -->'])
      expect(text).toContain(shown);
    const names = 'script, img, iframe, svg, style, object, b, [onclick], [onerror], [onmouseover], [style]';
    expect(await page.locator(`.markdown :is(${names})`).count()).toBe(0);
    expect(await page.locator('blockquote blockquote').count()).toBeLessThan(20);
    for (const link of await page.locator('.markdown a').all()) await link.hover();
    expect(await page.evaluate('typeof hit')).toBe('undefined');
    expect(complaints).toEqual([]); // no request to another host, and no error
  });

  test('a link opens a tab that does not know the page, and only on a click', async () => {
    const desk = await pageDesk({ answers: [] });
    const answer = says(`[the list](${desk.url}/page/icon.svg)`);
    const other = await pageDesk({ answers: [answer] });
    const { page } = await open(await answered(other), { token: other.token });
    const link = page.getByRole('link', { name: 'the list' });
    await link.hover();
    expect(page.context().pages().length).toBe(1);
    const opened = page.context().waitForEvent('page');
    await link.click();
    const tab = await opened;
    await tab.waitForURL(/icon\.svg$/);
    expect(await tab.evaluate('[window.opener, document.referrer]')).toEqual([null, '']);
  });

  test('half a table is readable text while it streams, and then a table', async () => {
    const text = '| Name | Size |\n|:--|--:|\n| alpha | 1 |\n| beta | 2 |\n\nThat was it.';
    const desk = await pageDesk({ answers: [{ text, tokensPerSecond: 5 }], chunkChars: 3 });
    const { id } = await desk.client.createSession({});
    const { page, complaints } = await open(`${desk.url}/#/sessions/${id}`, { token: desk.token });
    await desk.client.openExecution(id, { content: 'A table' });
    await page.locator('.markdown p', { hasText: '| Name |' }).waitFor();
    await page.locator('.markdown table').waitFor();
    expect(await page.locator('.pill').innerText()).toBe('At work');
    await untilState(page, 'Done');
    expect(await page.evaluate(OUTLINE)).toEqual([
      '<table><tr><th data-align=left>Name<th data-align=right>Size<tr><td data-align=left>alpha<td data-align=right>1' +
        '<tr><td data-align=left>beta<td data-align=right>2',
      '<p>That was it.',
    ]);
    expect(complaints).toEqual([]);
  });
});
