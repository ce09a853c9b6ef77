#!/usr/bin/env node
// Starts drover, or says in one sentence that this Node is too old for it. Written for any Node at all:
// an old one cannot parse the program, so the question is asked before the program is read.
'use strict';

var NODE_MIN = 24;

if (parseInt(process.versions.node, 10) < NODE_MIN) {
  process.stderr.write('drover needs Node ' + NODE_MIN + ' or newer; this is Node ' + process.versions.node + '.\n');
  process.exit(2);
}

// Threads find it by the variable only.
var cache = require('module').enableCompileCache().directory;
if (cache && !process.env.NODE_COMPILE_CACHE) process.env.NODE_COMPILE_CACHE = require('path').dirname(cache);

// In a clone the tree runs as it stands, whatever was built before; a published package has the bundle only.
var source = require('path').join(__dirname, 'drover.ts');
require(require('fs').existsSync(source) ? source : '../dist/drover.cjs').runProcess();
