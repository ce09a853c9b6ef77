// The bundle that is published: one CommonJS entry, which starts faster than ES modules, and a chunk for
// each command and provider, so that only what is used is loaded.

import { defineConfig } from 'rolldown';

export default defineConfig({
  input: {
    drover: 'bin/drover.ts',
    launcher: 'bin/launcher.ts',
    worker: 'packages/worker/src/entry.ts',
    'piscina-worker': 'packages/coordinator/node_modules/piscina/dist/worker.js',
  },
  platform: 'node',
  external: [/^@vscode\/ripgrep/, 'pino', '@napi-rs/nice'],
  plugins: [
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
    dir: 'dist',
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    minify: true,
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
    // Before anything else is loaded, so that the second start finds everything compiled.
    banner: ({ isEntry }) => (isEntry ? `require('node:module').enableCompileCache();` : ''),
  },
});
