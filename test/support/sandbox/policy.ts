// A sandbox policy as data. None of its paths exist.

import type { SandboxPolicy } from '@drover/sandbox/policy';

export const POLICY: SandboxPolicy = {
  system: {
    backend: 'bubblewrap',
    program: '/usr/bin/bwrap',
    version: 'bubblewrap 0.8.0',
    folders: [{ path: '/usr' }, { path: '/bin', link: 'usr/bin' }],
    toolchains: ['/h/person/.tools'],
    toolchainEnv: { TOOLS: '/h/person/.tools' },
    etc: '/s/etc',
    filter: '/s/filter',
    options: ['--disable-userns'],
    shell: '/bin/bash',
    node: '/n/bin/node',
    home: '/h/person',
    limits: {
      processes: 64,
      memoryBytes: 300 * 1024 * 1024,
      fileBytes: 1024 * 1024,
      openFiles: 256,
      cpuSeconds: 60,
      diskFreeBytes: 1,
      diskFreeFiles: 1,
    },
  },
  root: '/w/project',
  readable: [],
  writable: [],
  sealed: [],
  hidden: [],
  folder: '/box',
  groups: [],
};
