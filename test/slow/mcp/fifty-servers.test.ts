// Fifty MCP servers in one run.

import { test } from 'vitest';
import { checkPrefix } from '../../support/mcp/prefix.ts';

test('with 50 servers all workers begin with the same bytes', () => checkPrefix(50));
