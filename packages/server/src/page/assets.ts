// The files of the page, as the server hands them out. The page needs nothing from anywhere else.
//
// From source, types are taken off as each file is asked for, and what the page imports of the client is
// served beside it. The build writes the same files next to the bundle, and there they are read as they are.
// A path is looked up among the files there are, so no path leads anywhere else.

import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';

export type Asset = { readonly body: Buffer; readonly type: string };

/** Nothing but the page's own files and the server it came from; no script or style inside of it. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};

const isSource = import.meta.url.endsWith('.ts');
const ROOT = new URL(isSource ? './' : './page/', import.meta.url);
const CLIENT = new URL('../../../client/src/', ROOT);

/** What is at a path of the server, or undefined where no file of the page is. */
export function pageAsset(path: string): Asset | undefined {
  const name = path === '/' ? 'index.html' : path.startsWith('/page/') ? path.slice('/page/'.length) : '';
  const file = files().get(name);
  return file === undefined ? undefined : read(name, file);
}

/** Every file by its path below /page/, for the build to write. */
export function pageAssets(): ReadonlyMap<string, Asset> {
  return new Map([...files()].map(([name, file]) => [name, read(name, file)]));
}

let known: ReadonlyMap<string, URL> | undefined;

function files(): ReadonlyMap<string, URL> {
  known ??= new Map(isSource ? [...sourcesIn(ROOT, ''), ...sourcesIn(CLIENT, 'client/')] : builtIn(ROOT));
  return known;
}

function sourcesIn(folder: URL, prefix: string): readonly (readonly [string, URL])[] {
  return globSync('**/*.{ts,css,html,svg}', { cwd: fileURLToPath(folder) })
    .filter((path) => path !== 'assets.ts')
    .map((path) => [`${prefix}${path.replaceAll('\\', '/').replace(/\.ts$/, '.js')}`, new URL(path, folder)]);
}

function builtIn(folder: URL): readonly (readonly [string, URL])[] {
  return globSync('**/*.*', { cwd: fileURLToPath(folder) }).map((path) => [
    path.replaceAll('\\', '/'),
    new URL(path, folder),
  ]);
}

function read(name: string, file: URL): Asset {
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
  const bytes = readFileSync(file);
  return { body: file.pathname.endsWith('.ts') ? Buffer.from(runnable(bytes.toString('utf8'))) : bytes, type };
}

/** A module as a browser takes it: without types, and with addresses for what it imports. */
function runnable(source: string): string {
  return withoutTypes(source)
    .replace(/(from|import) '(\.[^']*)\.ts'/g, "$1 '$2.js'")
    .replace(/from '@drover\/client\/([\w-]+)'/g, "from '/page/client/$1.js'");
}

// Node says of this function, once, that it may change. Whoever looks at a page can do nothing about it, and the
// bundle does not use it.
function withoutTypes(source: string): string {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}
