// Highlighting of code: highlight.js without its languages, and each language when an answer first uses it.
//
// Code in a language that is not loaded, or longer than the limit, stays plain.

import type { HLJSApi, LanguageFn } from 'highlight.js';

/** `kind`: what highlight.js says it is, such as keyword or string; '' for plain text. */
export type CodePiece = { readonly text: string; readonly kind: string };

const CHARS_MAX = 50_000;

type Loaded = Promise<{ readonly default: LanguageFn }>;

const LANGUAGES: Readonly<Record<string, () => Loaded>> = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'),
  ini: () => import('highlight.js/lib/languages/ini'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  lua: () => import('highlight.js/lib/languages/lua'),
  makefile: () => import('highlight.js/lib/languages/makefile'),
  php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  scss: () => import('highlight.js/lib/languages/scss'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
};

const ALIASES: Readonly<Record<string, string>> = {
  'c++': 'cpp',
  cs: 'csharp',
  docker: 'dockerfile',
  golang: 'go',
  html: 'xml',
  js: 'javascript',
  jsx: 'javascript',
  kt: 'kotlin',
  make: 'makefile',
  mjs: 'javascript',
  patch: 'diff',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  sh: 'bash',
  shell: 'bash',
  svg: 'xml',
  toml: 'ini',
  ts: 'typescript',
  tsx: 'typescript',
  yml: 'yaml',
  zsh: 'bash',
};

/** Kinds that a reader styles. A piece of any other kind takes the kind around it. */
const KINDS = new Set(
  (
    'keyword built_in type literal number string regexp comment meta title section name attr attribute variable ' +
    'addition deletion'
  ).split(' '),
);

let core: HLJSApi | undefined;

function highlightName(language: string): string {
  const name =
    language
      .trim()
      .split(/[\s{:,]/, 1)[0]
      ?.toLowerCase() ?? '';
  return ALIASES[name] ?? name;
}

/** Loads a language; undefined if it is unknown or loaded already. */
export function loadHighlightLanguage(language: string): Promise<void> | undefined {
  const name = highlightName(language);
  const load = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name] : undefined;
  if (load === undefined || core?.getLanguage(name) !== undefined) return undefined;
  return registerHighlight(name, load);
}

async function registerHighlight(name: string, load: () => Loaded): Promise<void> {
  const [{ default: api }, { default: language }] = await Promise.all([import('highlight.js/lib/core'), load()]);
  core = api;
  api.registerLanguage(name, language);
}

/** The lines of the code, in pieces with a kind if its language is loaded. */
export function highlightCode(code: string, language: string): readonly (readonly CodePiece[])[] {
  const name = highlightName(language);
  if (core?.getLanguage(name) === undefined || code.length > CHARS_MAX)
    return code.split('\n').map((text) => (text === '' ? [] : [{ text, kind: '' }]));
  return highlightedLines(core.highlight(code, { language: name, ignoreIllegals: true }).value);
}

const ESCAPES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" };

/** Reads the markup that highlight.js makes: nested spans with a class, and five escaped characters. */
function highlightedLines(markup: string): readonly (readonly CodePiece[])[] {
  const lines: CodePiece[][] = [[]];
  const open: string[] = [];
  for (const [piece, name] of markup.matchAll(/<span class="(?:hljs-)?([\w-]+)[^"]*">|<\/span>|[^<]+/g)) {
    if (piece === '</span>') open.pop();
    else if (name !== undefined) open.push(KINDS.has(name) ? name : (open.at(-1) ?? ''));
    else {
      const text = piece.replaceAll(/&(\w+|#x27);/g, (whole, escaped: string) => ESCAPES[escaped] ?? whole);
      text.split('\n').forEach((line, at) => {
        if (at > 0) lines.push([]);
        if (line !== '') lines.at(-1)?.push({ text: line, kind: open.at(-1) ?? '' });
      });
    }
  }
  return lines;
}
