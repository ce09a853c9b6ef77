// Plain command lines: the only kind that an allow rule can cover.
//
// A plain line is a list of simple commands, separated by `;`, `&&`, `||`, `|` or line breaks. Every word is literal.
// Redirects may use only /dev/null or another descriptor. The text between the words must be exactly these operators.
// A keyword, a `&`, a parenthesis, an assignment, or text that the parser skipped therefore makes a line not plain.

import type { Command, SyntaxNode } from 'unbash';
import { literalShellText, parseShellCommand, type Parser } from './shell-parser.ts';

const START = /^[ \t\n]*(?:(?:!|time)[ \t]+)*$/;
const BETWEEN = /^[ \t]*(?:;|&&|\|\||\|&?|\n)[ \t\n]*(?:(?:!|time)[ \t]+)*$/;
const WITHIN = /^(?:[ \t]|\\\n)*$/;
const END = /^[ \t\n]*;?[ \t\n]*$/;
const REDIRECT = /^(?:\d?|&)>>?[ \t]*\/dev\/null$|^\d?<[ \t]*\/dev\/null$|^\d?[<>]&(?:\d|-)$/;

/** The words of each simple command; undefined if the line is not plain. */
export function plainShellCommands(source: string, parser: Parser): readonly (readonly string[])[] | undefined {
  const script = parseShellCommand(source, parser);
  if (typeof script === 'string') return undefined;
  const commands: (readonly string[])[] = [];
  let end = 0;
  for (const command of shellCommandsIn(script, parser)) {
    const read = readShellCommand(command, source);
    const gap = source.slice(end, command.pos);
    if (read === undefined || !(commands.length === 0 ? START : BETWEEN).test(gap)) return undefined;
    commands.push(read.words);
    end = read.end;
  }
  return commands.length > 0 && END.test(source.slice(end)) ? commands : undefined;
}

function shellCommandsIn(root: SyntaxNode, parser: Parser): readonly Command[] {
  const found: Command[] = [];
  const visit = (node: SyntaxNode): void => {
    if (node.type === 'Command') found.push(node);
    else parser.forEachChild(node, visit);
  };
  visit(root);
  return found;
}

function readShellCommand({ pos, name, prefix, suffix }: Command, source: string) {
  if (name === undefined || prefix.length > 0) return undefined;
  const words: string[] = [];
  let end = pos;
  for (const part of [name, ...suffix]) {
    const text = source.slice(part.pos, part.end);
    if (!WITHIN.test(source.slice(end, part.pos))) return undefined;
    end = part.end;
    if (part.type === 'Redirect' && REDIRECT.test(text)) continue;
    const word = part.type === 'Word' && part.text === text ? literalShellText(part) : undefined;
    if (word === undefined) return undefined;
    words.push(word);
  }
  return { words, end };
}
