// The bundle that is published: one CommonJS entry, which starts faster than ES modules, and a chunk for
// each command and provider, so that only what is used is loaded.

import { defineConfig } from 'rolldown';

export default defineConfig({
  input: { drover: 'bin/drover.ts' },
  platform: 'node',
  external: [/^@vscode\/ripgrep/, 'pino'],
  output: {
    dir: 'dist',
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    minify: true,
    // Before anything else is loaded, so that the second start finds everything compiled.
    banner: ({ isEntry }) => (isEntry ? `require('node:module').enableCompileCache();` : ''),
  },
});
