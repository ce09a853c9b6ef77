// The environment in which git runs below drover's tools: what a repository's config could start is off
// as far as it can be switched off from outside, nothing is paged or asked for, and looking at a
// repository writes nothing.
//
// It is deliberately mild. Hooks stay on, since a commit the user has allowed is to run them.

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
