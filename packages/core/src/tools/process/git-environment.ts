// Environment of git in commands that agents run. It disables programs of the repository's config as far as variables
// can, disables pager and prompts, and prevents reads from writing the index.
//
// Hooks stay enabled, because a commit that the user has allowed should run them.

export const gitEnvironment: Readonly<Record<string, string>> = environmentOf({
  'core.fsmonitor': 'false',
  'core.pager': 'cat',
  'diff.autoRefreshIndex': 'false',
  'diff.ignoreSubmodules': 'dirty',
  'log.showSignature': 'false',
});

function environmentOf(settings: Readonly<Record<string, string>>): Record<string, string> {
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
