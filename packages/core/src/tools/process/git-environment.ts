// Environment of commands that agents run. It disables programs of a repository's config as far as variables can,
// disables pagers and prompts, and prevents reads from writing git's index.
//
// Hooks stay enabled, because a commit that the user has allowed should run them.

const gitEnvironment: Readonly<Record<string, string>> = gitSettingsAsEnvironment({
  'core.fsmonitor': 'false',
  'core.pager': 'cat',
  'diff.autoRefreshIndex': 'false',
  'diff.ignoreSubmodules': 'dirty',
  'log.showSignature': 'false',
});

// Pagers and editors would wait for input that never comes.
const UNATTENDED = { PAGER: 'cat', GIT_EDITOR: ':' };

/** Returns the environment of a command. Commands with the same environment can share a sandbox started ahead. */
export function gitSafeCommandEnvironment(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...env, ...UNATTENDED, ...gitEnvironment };
}

function gitSettingsAsEnvironment(settings: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = Object.entries(settings);
  return {
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    GIT_CONFIG_COUNT: String(pairs.length),
    ...Object.fromEntries(
      pairs.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}
