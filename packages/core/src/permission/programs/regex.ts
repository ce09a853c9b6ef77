// Where a regular expression between delimiters ends, as sed and awk read it.

// In brackets a delimiter may or may not count, depending on who reads it, and a bracket in brackets
// is easily mistaken; so neither may be there, but for classes as [:alpha:].
const BRACKETS = /\[\^?(?:\[:[a-z]+:\]|\\[^\]\n]|[^\][\\\n])+\]/y;

/** The position behind the closing delimiter; undefined where that can't be said for certain. */
export function regexEnd(text: string, start: number, delimiter: string): number | undefined {
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (character === delimiter) return at + 1;
    if (character === '\n') return undefined;
    if (character === '\\') {
      at++;
      if (text[at] === '\n') return undefined;
    } else if (character === '[') {
      BRACKETS.lastIndex = at;
      const brackets = BRACKETS.exec(text)?.[0];
      if (brackets === undefined || brackets.includes(delimiter)) return undefined;
      at += brackets.length - 1;
    }
  }
  return undefined;
}

/** The same for plain text, in which only a backslash is special. */
export function textEnd(text: string, start: number, delimiter: string): number | undefined {
  for (let at = start; at < text.length; at++) {
    if (text[at] === delimiter) return at + 1;
    if (text[at] === '\n') return undefined;
    if (text[at] === '\\' && text[++at] === '\n') return undefined;
  }
  return undefined;
}
