// Calls that a model wrote down as text instead of making them.
//
// It happens to every model now and then, each in the dialect it was trained on. Such an answer asks
// for nothing and is useless in history, where it teaches the model to do it again: it is discarded and
// asked for once more. It is never executed.
//
// What counts is markup, at the beginning of a line, outside of code, that names a tool there is.
// Markup in a code fence or in `code`, in a sentence about markup, or with an unknown name is an answer
// like any other.

type Dialect = { readonly name: string; readonly pattern: RegExp };

// Each pattern's group `tool` is the name that was called.
const dialects: readonly Dialect[] = [
  {
    name: 'invoke',
    pattern:
      /^[ \t]*(?:<(?:\w+:)?function_calls>\s*)?<(?:\w+:)?invoke\s+name=["'](?<tool>[\w.-]+)["']\s*>\s*(?:<\/?(?:\w+:)?(?:parameter|invoke)\b|$)/gm,
  },
  {
    name: 'tool_call json',
    pattern:
      /^[ \t]*<(?:tool_call|function_call|tool_use)>\s*\{(?:(?!<\/?tool_call>)[\s\S]){0,1000}?"(?:name|function|tool)"\s*:\s*"(?<tool>[\w.-]+)"/gm,
  },
  { name: 'tool_call name', pattern: /^[ \t]*<tool_call>\s*(?<tool>[\w.-]+)\s*(?:\n|<arg_key>)/gm },
  {
    name: 'function=',
    pattern: /^[ \t]*(?:<tool_call>\s*)?<function=(?<tool>[\w.-]+)>\s*(?:\{|<parameter=|<\/function>|$)/gm,
  },
  {
    name: '[TOOL_CALLS]',
    pattern:
      /^[ \t]*\[TOOL_CALLS\]\s*(?:\[?\s*\{[^}]*?"name"\s*:\s*"(?<tool>[\w.-]+)"|(?<bare>[\w.-]+)\s*(?:\[ARGS\]|\{))/gm,
  },
  {
    name: 'deepseek',
    pattern: /<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?\s*(?<tool>[\w.-]+)/gm,
  },
  { name: 'harmony', pattern: /(?:<\|channel\|>|<\|start\|>assistant)[^\n]*?to=(?:functions\.)?(?<tool>[\w-]+)/gm },
  { name: 'kimi', pattern: /<\|tool_call_begin\|>\s*(?:functions\.)?(?<tool>[\w-]+)(?::\d+)?/gm },
];

const FENCED_CALL = /^[ \t]*```tool_code\s*\n(?:[^\n]*=\s*)?(?:print\()?(?:default_api\.)?(?<tool>[\w-]+)\(/gm;
const CODE = /^[ \t]*(```|~~~)[\s\S]*?(?:^[ \t]*\1[ \t]*$|(?![\s\S]))|`[^`\n]+`/gm;

/** The tool that a text calls in some dialect, or undefined where it is an ordinary text. */
export function textFormCall(
  text: string,
  tools: readonly string[],
): { readonly tool: string; readonly dialect: string } | undefined {
  // Nearly every answer is done with here.
  if (!/[<[`]/.test(text)) return undefined;
  const fenced = firstKnown(text, FENCED_CALL, tools);
  if (fenced !== undefined) return { tool: fenced, dialect: 'tool_code' };
  const prose = text.replace(CODE, '');
  for (const { name, pattern } of dialects) {
    const tool = firstKnown(prose, pattern, tools);
    if (tool !== undefined) return { tool, dialect: name };
  }
  return undefined;
}

function firstKnown(text: string, pattern: RegExp, tools: readonly string[]): string | undefined {
  for (const { groups } of text.matchAll(pattern)) {
    const name = (groups?.['tool'] ?? groups?.['bare'] ?? '').replace(/^functions\./, '');
    const known = tools.find((tool) => tool === name);
    if (known !== undefined) return known;
  }
  return undefined;
}
