// Filters the user's environment for child processes. It is an allow-list, because a deny-list would miss the key
// of the next provider.

import { delimiter, isAbsolute } from 'node:path';

const ALLOWED = new Set(
  `
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM COLORTERM COLUMNS NO_COLOR FORCE_COLOR CI TMPDIR TMP TEMP
    NODE_ENV NODE_PATH NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR NO_PROXY no_proxy PNPM_HOME NVM_DIR
    NVM_BIN VOLTA_HOME FNM_DIR BUN_INSTALL DENO_DIR COREPACK_HOME JAVA_HOME GRADLE_USER_HOME MAVEN_HOME M2_HOME
    ANDROID_HOME GOPATH GOROOT GOCACHE GOMODCACHE GOFLAGS CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN VIRTUAL_ENV
    CONDA_PREFIX PYENV_ROOT RBENV_ROOT GEM_HOME DOTNET_ROOT CC CXX CFLAGS CXXFLAGS LDFLAGS MAKEFLAGS
    PKG_CONFIG_PATH LD_LIBRARY_PATH XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
    SOURCE_DATE_EPOCH
  `
    .trim()
    .split(/\s+/),
);

const LISTS = new Set(['PATH', 'LD_LIBRARY_PATH']);

const PROXIES = new Set(['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']);

export function childProcessEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const allowed: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || !isVariableForProcess(name, value)) continue;
    const safe = LISTS.has(name) ? absoluteProgramPath(value) : value;
    // An empty list of libraries would mean the current folder.
    if (safe !== '' || value === '' || name === 'PATH') allowed[name] = safe;
  }
  return allowed;
}

/** Returns the environment for drover's own git, with the user's GIT_CONFIG_GLOBAL. */
export function gitProcessEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { GIT_CONFIG_GLOBAL: global } = env;
  return { ...childProcessEnvironment(env), ...(global !== undefined && { GIT_CONFIG_GLOBAL: global }) };
}

// A relative or empty entry is in the workspace, where a file could replace an allowed command, or a library of the
// program that starts the sandbox.
function absoluteProgramPath(path: string): string {
  return path.split(delimiter).filter(isAbsolute).join(delimiter);
}

function isVariableForProcess(name: string, value: string): boolean {
  // The URL of a proxy may contain a password.
  if (PROXIES.has(name)) return !value.includes('@');
  // Git would look for a relative folder of settings in the workspace.
  if (name === 'XDG_CONFIG_HOME') return isAbsolute(value);
  return ALLOWED.has(name) || name.startsWith('LC_');
}
