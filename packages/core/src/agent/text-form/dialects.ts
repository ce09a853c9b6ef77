// The dialects in which models write a call as text: how each begins, and where it ends.
//
// `opening` matches up to the arguments; its group `tool` is the name of the tool. `end` returns the
// position after the arguments, or undefined if something else follows.

/** Returns where a text ends that stops in the middle of a call, or undefined if it is no such text. */
export type CutOff = (from: number) => number | undefined;

export type Dialect = {
  readonly name: string;
  readonly opening: RegExp;
  readonly end: (text: string, at: number, cutOff: CutOff) => number | undefined;
};

const JSON_NAME = String.raw`(?=\{(?:(?!<\/?tool_call>)[\s\S]){0,1000}?"(?:name|function|tool)"\s*:\s*"(?<tool>[\w.-]+)")`;

export const dialects: readonly Dialect[] = [
  {
    name: 'invoke',
    opening: /[ \t]*(?:<(?:\w+:)?function_calls>\s*)?<(?:\w+:)?invoke\s+name=["'](?<tool>[\w.-]+)["']\s*>/y,
    end: (text, at, cutOff) => textFormElementsEnd(text, at, cutOff),
  },
  {
    name: 'tool_call json',
    opening: new RegExp(String.raw`[ \t]*<(?:tool_call|function_call|tool_use)>\s*${JSON_NAME}`, 'y'),
    end: textFormJsonEnd,
  },
  {
    name: 'tool_call name',
    opening: /[ \t]*<tool_call>\s*(?<tool>[\w.-]+)[ \t]*(?=\n|<arg_key>)/y,
    end: (text, at, cutOff) => textFormElementsEnd(text, at, cutOff),
  },
  {
    name: 'function=',
    opening: /[ \t]*(?:<tool_call>\s*)?<function=(?<tool>[\w.-]+)>/y,
    end: (text, at, cutOff) =>
      /\s*[{[]/y.test(text.slice(at, at + 100))
        ? textFormJsonEnd(text, at, cutOff)
        : textFormElementsEnd(text, at, cutOff),
  },
  {
    name: '[TOOL_CALLS]',
    opening:
      /[ \t]*\[TOOL_CALLS\]\s*(?:(?=\[?\s*\{[^}]{0,1000}?"name"\s*:\s*"(?<tool>[\w.-]+)")|(?<bare>[\w.-]+)\s*(?:\[ARGS\]|(?=\{)))/y,
    end: textFormJsonEnd,
  },
  {
    name: 'deepseek',
    opening:
      /[ \t]*<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>\s*(?<tool>[\w.-]+)|\s*(?<bare>[\w.-]+)\s*<｜tool▁sep｜>)\s*(?:```(?:json)?\s*)?/y,
    end: (text, at, cutOff) => endOfTextFormMatch(text, textFormJsonEnd(text, at, cutOff), /(?:\s*```)?/y),
  },
  {
    name: 'harmony',
    opening:
      /[ \t]*(?:<\|channel\|>|<\|start\|>assistant)[^\n]{0,200}?to=(?:functions\.)?(?<tool>[\w-]+)[^\n<]{0,40}(?:<\|constrain\|>\w*\s*)?<\|message\|>/y,
    end: textFormJsonEnd,
  },
  {
    name: 'kimi',
    opening: /[ \t]*<\|tool_call_begin\|>\s*(?:functions\.)?(?<tool>[\w-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>/y,
    end: textFormJsonEnd,
  },
  {
    name: 'tool_code',
    opening: /```tool_code[ \t]*\n(?:[^\n]*=\s*)?(?:print\()?(?:default_api\.)?(?<tool>[\w-]+)\(/y,
    end: (text, at, cutOff) =>
      endOfTextFormMatch(text, at, /[^\n]*\n(?:[^\n]*\n)*?[ \t]*```[ \t]*(?=\n|$)/y) ?? cutOff(at),
  },
];

/** Matches a possible start of a call: tags at the start of a line, special tokens anywhere. */
export const STARTS =
  /^[ \t]*(?:<(?:\w+:)?(?:function_calls?>|invoke\s|tool_call>|tool_use>|function=)|\[TOOL_CALLS\]|```tool_code)|<｜tool▁call▁begin|<\|(?:channel|start|tool_call_begin)\|>/gm;

/** Tags and tokens that may follow a call or separate two calls. */
export const FRAME =
  /\s+|<\/?(?:\w+:)?(?:invoke|function_calls?|tool_calls?|tool_use|function|parameter)>|<[|｜][^<>\n]{1,40}[|｜]>/y;

const ELEMENT =
  /\s*<(?:\w+:)?(?:parameter(?:\s+name=["'][^"'\n]{0,200}["'][^<>\n]{0,100}|=[\w.-]+)\s*|arg_key|arg_value)>/y;
const ELEMENT_END = /<\/(?:\w+:)?(?:parameter|arg_key|arg_value)>/g;

function textFormElementsEnd(text: string, from: number, cutOff: CutOff): number | undefined {
  let at = from;
  for (;;) {
    const value = endOfTextFormMatch(text, at, ELEMENT);
    if (value === undefined) return at;
    ELEMENT_END.lastIndex = value;
    const closing = ELEMENT_END.exec(text);
    if (closing === null) return cutOff(value);
    at = closing.index + closing[0].length;
  }
}

/** Returns the position after a JSON object or array. Counts brackets only; the content may be invalid. */
function textFormJsonEnd(text: string, from: number, cutOff: CutOff): number | undefined {
  const start = endOfTextFormMatch(text, from, /\s*(?=[{[])/y);
  if (start === undefined) return undefined;
  let depth = 0;
  const parts = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/gs;
  parts.lastIndex = start;
  for (let part = parts.exec(text); part !== null; part = parts.exec(text)) {
    if (part[0] === '{' || part[0] === '[') depth += 1;
    if (part[0] === '}' || part[0] === ']') depth -= 1;
    if (depth === 0) return parts.lastIndex;
  }
  return cutOff(start);
}

/** Returns the position after a match of a sticky pattern, or undefined without one. */
export function endOfTextFormMatch(text: string, at: number | undefined, pattern: RegExp): number | undefined {
  if (at === undefined) return undefined;
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}
