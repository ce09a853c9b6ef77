// The files of the page, as the server hands them out. The page needs nothing from anywhere else.
//
// The build writes them next to the bundle: one module, and one for each part that is loaded only when it is used.
// There they are read as they are. From source, what the page's first module imports is followed, wherever in
// packages/ it leads, and each module is served under its path there, with its types taken off. A path is looked up
// among these, so no path leads anywhere else.

import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { posix } from 'node:path';

export type Asset = { readonly body: string; readonly type: string };

const isSource = import.meta.url.endsWith('.ts');
const HERE = new URL(isSource ? './' : './page/', import.meta.url);
const PACKAGES = new URL('../../../', HERE);
const FIRST = 'server/src/page/view/main.ts';

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

/** Those that are the same from source and from the bundle. */
export const STILL: readonly string[] = [
  'index.html',
  'icon.svg',
  'icon-asking.svg',
  ...['base', 'controls', 'shell', 'run', 'timeline', 'conversation', 'markdown', 'diff'].map(
    (name) => `style/${name}.css`,
  ),
];

/** The file at a path of the server; undefined if the page has none there. */
export function pageAsset(path: string): Asset | undefined {
  const name = path === '/' ? 'index.html' : (/^\/page\/(.+)$/.exec(path)?.[1] ?? '');
  if (STILL.includes(name) || (!isSource && isBundled(name)))
    return pageAssetOf(name, readFileSync(new URL(name, HERE), 'utf8'));
  const body = isSource ? pageSourceAt(name) : undefined;
  return body === undefined ? undefined : pageAssetOf(name, body);
}

function isBundled(name: string): boolean {
  return /^[\w.-]+\.js$/.test(name) && existsSync(new URL(name, HERE));
}

function pageAssetOf(name: string, body: string): Asset {
  return { body, type: TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream' };
}

const LATER = /\bimport\('([^']+)'\)/g;
const IMPORT = /^(import\s+|(?:import|export)\s+[^'"`;=(]*\bfrom\s+)'([^']+)';/gm;

let modules: ReadonlyMap<string, string> = new Map();

function pageSourceAt(name: string): string | undefined {
  if (name !== 'main.js') return modules.get(name);
  modules = pageModulesReachedFrom(FIRST); // as the files are when the page is opened
  return `import '/page/${pagePathServedAs(FIRST)}';\n`;
}

/** All modules that this one needs, by the path they are served under. */
function pageModulesReachedFrom(first: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const waiting = [first];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(pagePathServedAs(path))) continue;
    const here = posix.dirname(path);
    const code = asModule(path, readFileSync(new URL(path, PACKAGES), 'utf8'));
    const imported = (name: string): string => {
      const target = name.startsWith('.') ? posix.join(here, name) : pageSourceOfPackage(name);
      waiting.push(target);
      return `/page/${pagePathServedAs(target)}`;
    };
    const served = (head: string, name: string): string =>
      // An import of types alone leaves only its braces.
      /^import\s*\{[\s,]*\}\s*from\s*$/.test(head) ? '' : `${head}'${imported(name)}';`;
    // A library needs nothing. The page has no use for other lazy imports, such as a provider's.
    const isLibrary = path.includes('node_modules/');
    const linked = isLibrary ? code : code.replace(IMPORT, (_, head: string, name: string) => served(head, name));
    const lazy = (whole: string, name: string): string => (isOfPage(name) ? `import('${imported(name)}')` : whole);
    found.set(pagePathServedAs(path), isLibrary ? code : linked.replace(LATER, lazy));
  }
  return found;
}

/** The libraries of the page, which need no other. */
const LIBRARY = /^highlight\.js\/lib\/(core|languages\/\w+)$/;

function isOfPage(name: string): boolean {
  return name === 'marked' || LIBRARY.test(name);
}

/** Where a package's own list of exports leads. */
function pageSourceOfPackage(name: string): string {
  if (name === 'marked') return 'markdown/node_modules/marked/lib/marked.esm.js';
  if (LIBRARY.test(name)) return `markdown/node_modules/${name}.js`;
  const [, folder, path] = /^@drover\/(\w+)\/(.+)$/.exec(name) ?? [];
  if (folder === undefined) throw new Error(`the page can't import ${name}: it is none of its libraries`);
  return `${folder}/src/${path}.ts`;
}

function pagePathServedAs(path: string): string {
  return path.replace(/\.ts$/, '.js');
}

function asModule(path: string, code: string): string {
  if (path.endsWith('.ts')) return pageSourceWithoutTypes(code);
  // highlight.js is CommonJS, and needs nothing but the module that it fills.
  return LIBRARY.test(path.replace('markdown/node_modules/', '').replace(/\.js$/, ''))
    ? `const module = { exports: {} };\n${code}\nexport default module.exports;\n`
    : code;
}

// Node says of this function, once, that it may change. A user of the page can do nothing about it, and the
// bundle does not use it.
function pageSourceWithoutTypes(source: string): string {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}
