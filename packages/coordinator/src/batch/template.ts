// Templates in titles, prompts and gates: {{ path }}, {{ files }}, {{ vars.owner }}. Pure.
//
// In a command each value is quoted as one word of the shell: a file may be called `$(reboot).ts`. Quoting works only
// outside quotes, so a template inside quotes is a mistake. Literal braces are written \{{.

const TEMPLATE = /\\\{\{|\{\{([^{}\n]*)\}\}/g;
const NAME = /^[A-Za-z][\w-]*(?:\.[\w-]+)?$/;
const ODD = /[^\P{Other} ]|[\p{Zl}\p{Zp}"\\]/u;

/** Names that every task has, besides vars.NAME. */
export const TEMPLATE_NAMES = ['path', 'files', 'name', 'dir', 'ext', 'count', 'group', 'repository'] as const;

export type TemplateValues = Readonly<Record<(typeof TEMPLATE_NAMES)[number], string | readonly string[]>> & {
  readonly vars: Readonly<Record<string, string>>;
};

export type Named = { readonly name: string; readonly whole: string; readonly at: number; readonly isName: boolean };

export function listTemplateNames(text: string): readonly Named[] {
  return [...text.matchAll(TEMPLATE)].flatMap(({ 0: whole, 1: inner, index: at }) => {
    if (inner === undefined) return [];
    const name = inner.trim();
    return [{ name, whole, at, isName: NAME.test(name) }];
  });
}

/** Templates inside shell quotes. */
export function quotedTemplates(command: string): readonly Named[] {
  return listTemplateNames(command).filter(({ at }) => isTemplateInQuotes(command.slice(0, at)));
}

export function filledTemplate(text: string, values: TemplateValues): string {
  return replaceTemplateNames(text, values, (value) =>
    typeof value === 'string' ? value : value.map(plainTemplatePath).join(', '),
  );
}

export function filledForShell(command: string, values: TemplateValues): string {
  const words = (value: string | readonly string[]) => (typeof value === 'string' ? [value] : value);
  return replaceTemplateNames(command, values, (value) => words(value).map(templateShellWord).join(' '));
}

/** Names of variables that a text uses and the values lack. */
export function missingTemplateNames(text: string, { vars }: TemplateValues): readonly string[] {
  return listTemplateNames(text).flatMap(({ name }) => {
    const variable = templateVariable(name);
    return variable !== undefined && !Object.hasOwn(vars, variable) ? [variable] : [];
  });
}

export function templateVariable(name: string): string | undefined {
  return name.startsWith('vars.') ? name.slice('vars.'.length) : undefined;
}

function replaceTemplateNames(
  text: string,
  values: TemplateValues,
  written: (value: string | readonly string[]) => string,
): string {
  return text.replaceAll(TEMPLATE, (whole, inner: string | undefined) => {
    if (inner === undefined) return '{{';
    const name = inner.trim();
    const variable = templateVariable(name);
    const known = TEMPLATE_NAMES.find((each) => each === name);
    const value = variable === undefined ? known && values[known] : values.vars[variable];
    return value === undefined ? whole : written(value);
  });
}

function templateShellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A path that a reader could mistake for other text is written as JSON. */
function plainTemplatePath(path: string): string {
  return ODD.test(path) ? JSON.stringify(path) : path;
}

function isTemplateInQuotes(before: string): boolean {
  let quote = '';
  for (let at = 0; at < before.length; at++) {
    const char = before[at] ?? '';
    if (char === '\\' && quote !== "'") at += 1;
    else if (quote === '' && (char === '"' || char === "'" || char === '`')) quote = char;
    else if (char === quote) quote = '';
  }
  return quote !== '';
}
