// Addresses in a model's Markdown: only those that a browser opens, and words that hide where a link leads.

const ADDRESS_CHARS_MAX = 2_000;

/** The address of a link as plain ASCII; undefined if it is not http, https or mailto. */
export function safeLinkAddress(href: string): string | undefined {
  if (href.length > ADDRESS_CHARS_MAX || !/^(https?:\/\/|mailto:)/i.test(href)) return undefined;
  try {
    const address = new URL(href).href;
    return /^[!-~]+$/.test(address) ? address : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Whether the words of a link hide where it leads: they look like an address, and it is another one. */
export function isDisguisedLink(words: string, href: string): boolean {
  const bare = (text: string): string =>
    text
      .trim()
      .toLowerCase()
      .replace(/^(https?:\/\/|mailto:)/, '')
      .replace(/\/$/, '');
  return /^(https?:\/\/)?[\w-]+(\.[\w-]+)+(\/|$)/i.test(words.trim()) && bare(words) !== bare(href);
}
