// Rules as users write them, in flags and configs: the tool that a rule names must exist.
//
// Clients of `drover serve` bring tools of their own, so a name there may be one of theirs. It is still an error
// if it looks like a tool of drover's: `bash` or `shel` would otherwise deny nothing.

import { UsageError } from '@drover/core/errors';
import { type Effect, parsePermissionRule, type Rule } from '@drover/core/permission/rules';
import { isToolNameForRule, TOOL_NAMES, usualToolNameOfRule } from '@drover/core/permission/tool-names';
import { nearestKnownWord } from '@drover/documents/suggestion';

/** Throws UsageError if the text is not a rule, or names no tool of drover's. */
export function readPermissionRule(text: string, effect: Effect): Rule {
  const rule = readServedToolRule(text, effect);
  if (isKnownToolRule(rule)) return rule;
  throw new UsageError(`the rule ${rule.text} names no tool; the tools are ${TOOL_NAMES.join(', ')}`);
}

/** The same where clients have tools of their own: any name will do that is not meant for a tool of drover's. */
export function readServedToolRule(text: string, effect: Effect): Rule {
  const rule = parsePermissionRule(text, effect);
  const meant = isKnownToolRule(rule)
    ? undefined
    : (usualToolNameOfRule(rule.tool) ?? nearestKnownWord(rule.tool, TOOL_NAMES));
  if (meant === undefined) return rule;
  const corrected = rule.text.replace(rule.tool, meant);
  throw new UsageError(`the rule ${rule.text} names no tool; did you mean ${corrected}?`);
}

type RuleFile = {
  readonly path: string;
  readonly config: {
    readonly allow?: readonly Rule[];
    readonly ask?: readonly Rule[];
    readonly deny?: readonly Rule[];
  };
};

/** One sentence for each rule of a config that names no tool of drover's. */
export function listForeignRules({ path, config }: RuleFile): readonly string[] {
  return [config.allow, config.ask, config.deny]
    .flatMap((rules = []) => rules.filter((rule) => !isKnownToolRule(rule)))
    .map(
      ({ text }) =>
        `${path}: the rule ${text} names no tool of drover's; it holds only for tools of clients of drover serve`,
    );
}

function isKnownToolRule({ tool }: Rule): boolean {
  return tool === '*' || isToolNameForRule(tool);
}
