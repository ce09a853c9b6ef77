// Shell parser: parses commands, and reads words whose value is certain before the shell runs them.
//
// The parser is loaded when the first command is judged, because most starts need none.

import type { ParsedScript, SyntaxNode, Word } from 'unbash';

const COMMAND_CHARS_MAX = 20_000;

export type Parser = {
  readonly parse: (source: string) => ParsedScript;
  readonly forEachChild: (node: SyntaxNode, visit: (child: SyntaxNode) => void) => void;
};

let loading: Promise<Parser> | undefined;

export function loadShellParser(): Promise<Parser> {
  loading ??= import('unbash');
  return loading;
}

/** Returns the syntax tree of a command, or the reason why there is none. */
export function parseShellCommand(source: string, parser: Parser): ParsedScript | string {
  if (source.length > COMMAND_CHARS_MAX) return `it is longer than ${COMMAND_CHARS_MAX} characters`;
  // oxlint-disable-next-line no-control-regex -- the pattern searches for them
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(source)) return 'it contains control characters';
  const script = parser.parse(source);
  return (script.errors?.length ?? 0) > 0 ? 'it does not parse' : script;
}

// One piece of a word that the shell does not change: plain or quoted characters. A `~` expands at the start of a word
// and after `=` or `:`. Braces expand unless they hold a single plain word.
const PLAIN = String.raw`[\p{L}\p{M}\p{N}_./:=@%+,^!-]|(?<=[\p{L}\p{N}_])[~#]|\{\w*\}`;
const QUOTED = String.raw`\\[^\n]|'[^']*'|"(?:[^"$\x60\\]|\\["$\x60\\]|\$(?="))*"`;
const LITERAL = new RegExp(`^(?:${PLAIN}|${QUOTED})+$`, 'u');
const PIECES = new RegExp(QUOTED, 'gu');

/** The value of a word that the shell does not expand; undefined if the shell computes it. */
export function literalShellText({ text, value }: Word): string | undefined {
  if (text === '[' || text === ']') return text;
  if (!LITERAL.test(text)) return undefined;
  const read = text.replace(PIECES, (piece) => {
    if (piece.startsWith('\\')) return piece.slice(1);
    const inside = piece.slice(1, -1);
    return piece.startsWith("'") ? inside : inside.replace(/\\(["$`\\])/g, '$1');
  });
  // The parser reads the same text independently. If the two values differ, the word is not certain.
  return read === value ? read : undefined;
}
