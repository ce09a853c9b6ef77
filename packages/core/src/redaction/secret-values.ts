// The exact secrets of a process, and every form in which they may appear.
//
// Values that are too short or too common are not hidden: they would match everywhere, and the gaps would reveal them.

const VALUE_CHARS_MIN = 8;

const COMMON = new Set(
  (
    'password passwort changeme changeit secretkey mysecret testtest testing123 example1 username postgres database localhost ' +
    'undefined disabled required optional redacted development production placeholder anonymous administrator default1 ' +
    'password1 password123 secret123 your-api-key your-token your_api_key your_token not-needed no-key-needed'
  ).split(' '),
);

const SECRET_NAME =
  /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|_PWD|_PASS|_PAT|_AUTH|COOKIE|WEBHOOK(?:_URL)?)(?:_?\d{1,3})?$/i;
const SECRET_WORD = /(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS?)_/i;
const BENIGN_ENDING =
  /_(?:FILE|PATH|DIR|NAME|ID|TYPE|TTL|URL|URI|ENDPOINT|HOST|REGION|LENGTH|LIMIT|EXPIRY|EXPIRES|TIMEOUT|ENABLED)$/i;
// Public by purpose, although their names suggest otherwise.
const PUBLIC_NAME = /(?:PUBLIC_KEY|PUBLISHABLE_KEY|SSH_KEY_TYPE|GPG_KEY|HOST_KEY)$/i;
// A path to a secret is not a secret. Base64 may begin with a slash too, so a path needs a file ending or a common
// folder.
const FILE_PATH =
  /^(?:~|\.{0,2})?\/(?:[^/\n]*\/)*[^/\n]*\.[A-Za-z0-9]{1,8}$|^[A-Za-z]:\\|^(?:~|\.{1,2}|\/(?:home|Users|root|etc|var|opt|usr|tmp|run|mnt|srv|private|workspace|app))\/[\w./ @-]+$/;

const URL_PASSWORD = /:\/\/[^\s/?#@:]*:([^\s/@]+)@/g;
const NAMED_PASSWORD = /(?:^|[;?&\s])(?:password|pwd|AccountKey|SharedAccessKey)=([^;&\s]+)/gi;

/** Secrets of an environment: variables with secret names, and passwords inside addresses and connection strings. */
export function secretValues(env: Readonly<Record<string, string | undefined>>): string[] {
  const values = Object.entries(env).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const parts = [...value.matchAll(URL_PASSWORD), ...value.matchAll(NAMED_PASSWORD)].map((match) => match[1] ?? '');
    return [
      ...(isSecretName(name) && !FILE_PATH.test(value) ? [value.trim()] : []),
      ...parts.flatMap(withDecodedSecret),
    ];
  });
  return [...new Set(values)].filter(isSecretWorthHiding);
}

export function isSecretWorthHiding(value: string): boolean {
  return value.length >= VALUE_CHARS_MIN && !COMMON.has(value.toLowerCase()) && new Set(value).size > 2;
}

/** The value as it is, and as written in JSON, addresses and hex dumps. */
export function plainFormsOfSecret(value: string): string[] {
  const json = escapeSecretForJson(value);
  const url = encodeSecretForUrl(value);
  const hex = Buffer.from(value).toString('hex');
  return uniqueSecretForms([
    value,
    json,
    escapeSecretForJson(json),
    json.replaceAll('/', String.raw`\/`),
    escapeSecretBeyondAscii(json),
    url,
    url.replaceAll('%20', '+'),
    url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    hex,
    hex.toUpperCase(),
  ]);
}

function isSecretName(name: string): boolean {
  if (PUBLIC_NAME.test(name)) return false;
  return SECRET_NAME.test(name) || (SECRET_WORD.test(name) && !BENIGN_ENDING.test(name));
}

function withDecodedSecret(part: string): string[] {
  try {
    return [part, decodeURIComponent(part)];
  } catch (error) {
    if (error instanceof URIError) return [part];
    throw error;
  }
}

function escapeSecretForJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function escapeSecretBeyondAscii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function encodeSecretForUrl(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function uniqueSecretForms(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
