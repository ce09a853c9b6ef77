// Completion scripts for bash, zsh and fish. Each asks drover for the candidates, so none goes stale.

import { UsageError } from '@drover/core/errors';

// yargs answers in the format of the shell in SHELL: with descriptions for zsh, without for all others.
const SCRIPTS = {
  bash: `_drover_completions() {
  local IFS=$'\\n' word="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=($(compgen -W "$(SHELL=bash drover --get-yargs-completions "\${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)" -- "$word"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _drover_completions drover
`,
  zsh: `#compdef drover
_drover_completions() {
  local -a found
  found=("\${(@f)$(SHELL=zsh drover --get-yargs-completions "\${(@)words[1,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then _describe 'drover' found; else _files; fi
}
compdef _drover_completions drover
`,
  fish: `function __drover_completions
  set -l words (commandline -opc) (commandline -ct)
  SHELL=fish drover --get-yargs-completions $words 2>/dev/null
end
complete -c drover -a '(__drover_completions)'
`,
};

export const SHELLS: readonly string[] = Object.keys(SCRIPTS);

/** The script for the named shell, or for the user's shell. */
export function writeCompletionScript(words: readonly string[], userShell: string | undefined): string {
  const [shell, ...more] = words;
  const own = userShell?.split('/').at(-1) ?? '';
  const name = shell ?? (SHELLS.includes(own) ? own : 'bash');
  const found = Object.entries(SCRIPTS).find(([each]) => each === name)?.[1];
  if (found === undefined || more.length > 0)
    throw new UsageError(`drover completion takes one of ${SHELLS.join(', ')}; source what it prints`);
  return found;
}
