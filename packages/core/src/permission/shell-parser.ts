// The parser of shell commands. It is loaded when the first command has to be judged: most starts need none.

import type { ParsedScript, SyntaxNode } from 'unbash';

export type Parser = {
  readonly parse: (source: string) => ParsedScript;
  readonly forEachChild: (node: SyntaxNode, visit: (child: SyntaxNode) => void) => void;
};

let loading: Promise<Parser> | undefined;

export function loadParser(): Promise<Parser> {
  loading ??= import('unbash');
  return loading;
}
