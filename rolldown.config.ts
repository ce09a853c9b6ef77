// The bundle that is published: one CommonJS entry, which starts faster than ES modules, and a chunk for
// each command and provider, so that only what is used is loaded. What a worker's thread runs is made by itself: a run
// starts it many times over, and it should hold nothing that only the main thread needs.

import { readFileSync } from 'node:fs';
import { defineConfig, type OutputOptions, type Plugin, rolldown } from 'rolldown';
import { STILL } from './packages/server/src/page/assets.ts';

const PAGE = 'packages/server/src/page';

/** The page of `drover serve`, next to the bundle: modules for the browser, and the rest as it is. */
const page: Plugin = {
  name: 'page',
  async generateBundle() {
    const built = await rolldown({ input: `${PAGE}/view/main.ts`, platform: 'browser', external: /^node:/ });
    const names = { entryFileNames: '[name].js', chunkFileNames: 'part-[name].js' };
    const { output } = await built.generate({ format: 'esm', minify: true, ...names });
    for (const made of output) {
      if (made.type !== 'chunk') throw new Error(`the page does not serve ${made.fileName}`);
      const lacking = made.imports.find((name) => name.startsWith('node:'));
      if (lacking !== undefined) throw new Error(`a browser has no ${lacking}, which the page imports`);
      this.emitFile({ type: 'asset', fileName: `page/${made.fileName}`, source: made.code });
    }
    for (const name of STILL)
      this.emitFile({ type: 'asset', fileName: `page/${name}`, source: readFileSync(`${PAGE}/${name}`) });
  },
};

const output: OutputOptions = {
  dir: 'dist',
  format: 'cjs',
  entryFileNames: '[name].cjs',
  minify: true,
  // Before anything else is loaded, so that the second start finds everything compiled.
  banner: ({ isEntry }) => (isEntry ? `require('node:module').enableCompileCache();` : ''),
};
// ripgrep is a program, and so is what nice loads; piscina does without nice where it is missing.
const external = [/^@vscode\/ripgrep/, '@napi-rs/nice'];

/** A lazy `require` through `createRequire` is invisible to the bundler; a plain one puts the module into the bundle. */
const lazyStringWidth: Plugin = {
  name: 'lazy-string-width',
  transform: {
    filter: { id: /bin\/views\/text\/terminal-text\.ts$/ },
    handler: (code) => {
      const lazy = "createRequire(import.meta.url)('string-width')";
      if (!code.includes(lazy)) throw new Error('terminal-text.ts loads string-width in another way now');
      return code.replace(lazy, "require('string-width')");
    },
  },
};

// Not named worker: that is the chunk of the command.
const thread = defineConfig({
  input: { thread: 'packages/worker/src/entry.ts' },
  platform: 'node',
  external,
  output: { ...output, chunkFileNames: 'thread-[name].cjs' },
});

const drover = defineConfig({
  input: {
    drover: 'bin/drover.ts',
    launcher: 'bin/launcher.ts',
    'piscina-worker': 'packages/coordinator/node_modules/piscina/dist/worker.js',
  },
  platform: 'node',
  external,
  plugins: [
    page,
    lazyStringWidth,
    {
      // It looks for the file that its threads begin with next to itself.
      name: 'piscina-worker',
      transform: {
        filter: { id: /piscina\/dist\/index\.js$/ },
        handler: (code) => {
          if (!code.includes("'worker.js'")) throw new Error('piscina begins its threads in another way now');
          return code.replace("'worker.js'", "'piscina-worker.cjs'");
        },
      },
    },
  ],
  output: {
    ...output,
    chunkFileNames: '[name].cjs',
    // What all begin with is one file, and an agent with all it needs another: forty small ones take longer to
    // find than to run.
    codeSplitting: {
      groups: [
        {
          name: 'common',
          test: /[\\/](io|exit-code|plain-words|terminal-text|core[\\/]src[\\/]failure)\.ts$/,
          priority: 2,
        },
        { name: 'agent', test: /bin[\\/](commands[\\/]exec|execution[\\/]execution)\.ts$/, priority: 1 },
      ],
    },
  },
});

export default [drover, thread];
