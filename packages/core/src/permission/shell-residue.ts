// Whether a parsed command accounts for all of its text.
//
// The parser goes on where the text is wrong, and may step over something in silence. So the words are
// taken out of the text, and what remains has to be exactly the operators and keywords that the tree
// says, and comments: nothing can hide between them.

import type { ParsedScript, SyntaxNode } from 'unbash';
import type { Parser } from './shell-parser.ts';

const TAKEN = '\u0001'; // no command holds it: control characters are refused before

const TOKEN = /[a-z]+|&&|\|\||\|&|;;&|;&|;;|[;&|(){}!]/g;

/** What is left over; undefined where nothing is. */
export function residueOf(
  source: string,
  script: ParsedScript,
  { forEachChild }: Pick<Parser, 'forEachChild'>,
): string | undefined {
  const text = source.split('');
  const expected = new Map<string, number>();
  const take = (from: number, to: number) => text.fill(TAKEN, from, to);
  const expect = (...tokens: readonly string[]) => {
    for (const token of tokens) expected.set(token, (expected.get(token) ?? 0) + 1);
  };
  const visit = (node: SyntaxNode): void => {
    if (isLeaf(node)) take(node.pos, node.end);
    if (node.type === 'HereDoc') {
      take(node.pos, node.end);
      take(node.body.pos, node.body.end);
      if (node.closing !== undefined) take(node.closing.pos, node.closing.end);
    }
    expect(...tokensOf(node));
    if (!isLeaf(node) && node.type !== 'HereDoc') forEachChild(node, visit);
  };
  visit(script);

  const rest = text
    .join('')
    .replace(/(^|[\s;&|()])#[^\n]*/g, '$1')
    .replaceAll('\\\n', ' ');
  for (const token of rest.match(TOKEN) ?? []) {
    if (token === ';') continue;
    const count = expected.get(token) ?? 0;
    if (count === 0) return token;
    expected.set(token, count - 1);
  }
  const missing = [...expected].find(([, count]) => count > 0)?.[0];
  return missing ?? rest.replace(TOKEN, '').replaceAll(TAKEN, '').trim().at(0);
}

function isLeaf({ type }: SyntaxNode): boolean {
  switch (type) {
    case 'Word':
    case 'Assignment':
    case 'Redirect':
    case 'HereString':
    case 'TestCommand':
    case 'ArithmeticCommand':
    case 'Time':
    case 'Negation':
      return true;
    default:
      return false;
  }
}

// Only for what the grammar understands: the rest is refused anyway.
function tokensOf(node: SyntaxNode): readonly string[] {
  switch (node.type) {
    case 'Pipeline':
    case 'AndOr':
      return node.operators;
    case 'Statement':
      return node.background === true ? ['&'] : [];
    case 'Subshell':
      return ['(', ')'];
    case 'BraceGroup':
      return ['{', '}'];
    case 'If':
      return ['if', 'then', 'fi', ...(node.else === undefined ? [] : ['else'])];
    case 'Elif':
      return ['elif', 'then'];
    case 'While':
      return [node.kind, 'do', 'done'];
    case 'For':
      return ['for', 'in', 'do', 'done'];
    case 'Case':
      return ['case', 'in', 'esac'];
    case 'CaseItem':
      return [
        ')',
        ...node.pattern.slice(1).map(() => '|'),
        ...(node.terminator === undefined ? [] : [node.terminator]),
      ];
    default:
      return [];
  }
}
