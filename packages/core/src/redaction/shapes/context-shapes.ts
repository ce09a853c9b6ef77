// Shapes of secrets that are recognised by their context: key blocks, passwords in addresses, headers, connection
// strings, assignments.
//
// The name of a secret stays readable; only its value is redacted. Anchors end close to the secret, so a stream holds
// back little text.

import { type Shape, alphabet, BASE64, HEX, PADDED } from './pattern.ts';

const KEY_KINDS = ['', 'RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED ', 'ED25519 ', 'ANY '];
const NAMED = alphabet(/[\s:=>"'\\]/); // between a name and its value, in YAML, JSON, TOML, code and headers
const QUOTES = alphabet(/["'\\]/);
const CREDENTIAL = alphabet(/[\w.~+/=-]/);
const QUERY_VALUE = alphabet(/[\w.~%+-]/);
const USER = alphabet(/[^\s"'`<>/?#@:\\()[\]{},;|]/);
const URL_PASSWORD = alphabet(/[^\s"'`<>/@\\()[\]{},;|]/);
const PASSWORD = alphabet(/[^\s;"'`<>\\{}[\]()]/);
const ENV_VALUE = alphabet(/[\w+/~!#%^&*@-]/);
// Separators between two lines of a key: line breaks, escaped or not, indentation, quotes, line numbers, diff and quote
// marks.
const KEY_BREAK = alphabet(/[\s\\nr0-9+|>#*"',-]/);
const KEY_TEXT = alphabet(/[\s\w\\+/=|>#*:"',-]/);
const PGP_TEXT = alphabet(/[\s\w\\+/=|>#*:"',.()-]/);

const LETTER_AND_DIGIT = /(?=.*[A-Za-z])(?=.*\d)/;

export const CONTEXT_SHAPES: readonly Shape[] = [
  {
    id: 'private-key',
    anchors: KEY_KINDS.map((kind) => `-----BEGIN ${kind}PRIVATE KEY-----`),
    body: [run(KEY_BREAK, 1, 24), run(BASE64, 16, 16)],
    tail: { of: KEY_TEXT, until: '-----END' },
  },
  {
    // The two header lines of an encrypted key contain characters that keys lack.
    id: 'private-key',
    anchors: ['DEK-Info: '],
    body: [
      run(alphabet(/[A-Z0-9-]/), 5, 24),
      ',',
      run(alphabet(/[0-9A-Fa-f]/), 16, 64),
      run(KEY_BREAK, 1, 24),
      run(BASE64, 16, 16),
    ],
    tail: { of: KEY_TEXT, until: '-----END' },
  },
  {
    id: 'private-key',
    anchors: ['-----BEGIN PGP PRIVATE KEY BLOCK-----'],
    body: [run(PGP_TEXT, 64, 64)],
    tail: { of: PGP_TEXT, until: '-----END' },
  },
  {
    id: 'private-key',
    anchors: [...KEY_KINDS.map((kind) => `${kind}PRIVATE KEY`), 'PGP PRIVATE KEY BLOCK'].map(
      (name) => `-----END ${name}-----`,
    ),
    body: [],
  },
  {
    id: 'openssh-key',
    anchors: ['b3BlbnNzaC1rZXktdjE'],
    body: [run(BASE64, 32, 32)],
    tail: { of: KEY_TEXT, until: '-----END' },
  },
  {
    id: 'putty-key',
    anchors: ['Private-Lines: '],
    body: [run(alphabet(/\d/), 1, 4), run(KEY_BREAK, 1, 24), run(BASE64, 16, 16)],
    tail: { of: KEY_TEXT, until: 'Private-MAC' },
    shown: 1,
  },
  {
    id: 'wireguard-key',
    anchors: ['PrivateKey = ', 'PrivateKey=', 'PresharedKey = ', 'PresharedKey='],
    body: [run(BASE64, 43, 43), '='],
    shown: 0,
  },

  {
    id: 'url-password',
    anchors: ['://', String.raw`:\/\/`],
    body: [run(USER, 0, 100), ':', run(URL_PASSWORD, 3, 200)],
    closing: '@',
    needs: /^[^$]/, // a shell variable is no secret
    shown: 2,
  },
  {
    id: 'query-secret',
    anchors: [
      ...['access_token', 'refresh_token', 'id_token', 'api_key', 'apikey', 'client_secret', 'auth_token'].map(
        (name) => `${name}=`,
      ),
      ...['token', 'key', 'secret', 'sig', 'signature', 'password'].flatMap((name) => [`?${name}=`, `&${name}=`]),
      'X-Amz-Signature=',
      'X-Amz-Security-Token=',
      'X-Goog-Signature=',
    ],
    body: [run(QUERY_VALUE, 16, 40)],
    needs: LETTER_AND_DIGIT,
    shown: 0,
    tail: { of: QUERY_VALUE },
  },
  {
    id: 'connection-password',
    anchors: ['Password=', 'password=', 'PASSWORD=', 'Pwd=', 'pwd=', 'PWD='],
    body: [run(PASSWORD, 3, 64)],
    after: /(?<=;\s{0,2}|\b(?:host|hostaddr|user|dbname|port)=[^\s=]{1,48}\s{1,2})/y,
    shown: 0,
    tail: { of: PASSWORD },
  },
  {
    id: 'azure-account-key',
    anchors: ['AccountKey=', 'SharedAccessKey='],
    body: [run(BASE64, 32, 32)],
    shown: 0,
    tail: { of: PADDED },
  },
  {
    id: 'authorization',
    anchors: ['Basic ', 'basic ', 'Bearer ', 'bearer ', 'Token ', 'token ', 'ApiKey ', 'SSWS ', 'Digest '],
    body: [run(CREDENTIAL, 8, 8)],
    after: /(?<=authorization["'\\]{0,4}\s{0,3}[:=,]\s{0,3}["'`\\]{0,4})/iy,
    shown: 0,
    tail: { of: CREDENTIAL },
  },
  {
    id: 'bearer-token',
    anchors: ['Bearer ', 'bearer '],
    body: [run(CREDENTIAL, 20, 64)],
    needs: LETTER_AND_DIGIT,
    shown: 0,
    tail: { of: CREDENTIAL },
  },
  {
    id: 'key-header',
    anchors: [
      'x-api-key',
      'X-Api-Key',
      'X-API-Key',
      'X-API-KEY',
      'PRIVATE-TOKEN',
      'X-Auth-Token',
      'X-Vault-Token',
      'x-goog-api-key',
    ],
    body: [run(NAMED, 1, 10), run(CREDENTIAL, 16, 16)],
    shown: 1,
    tail: { of: CREDENTIAL },
  },
  {
    id: 'aws-secret-key',
    anchors: [
      'ecret_access_key',
      'SECRET_ACCESS_KEY',
      'ecretAccessKey',
      'aws_secret_key',
      'AWS_SECRET_KEY',
      'secret_key',
      'secretKey',
    ],
    body: [run(NAMED, 1, 10), run(BASE64, 40, 40)],
    needs: /(?=.*[A-Z])(?=.*[a-z])/,
    shown: 1,
    tail: { of: BASE64 },
  },
  {
    id: 'client-secret',
    anchors: ['client_secret', 'clientSecret', 'CLIENT_SECRET'],
    body: [run(NAMED, 1, 10), run(CREDENTIAL, 16, 40)],
    needs: LETTER_AND_DIGIT,
    shown: 1,
    tail: { of: CREDENTIAL },
  },
  {
    id: 'env-secret',
    anchors: [
      'PASSWORD=',
      'PASSWD=',
      'SECRET=',
      'TOKEN=',
      'API_KEY=',
      'APIKEY=',
      'SECRET_KEY=',
      'ACCESS_KEY=',
      'PRIVATE_KEY=',
      'ENCRYPTION_KEY=',
    ],
    body: [run(QUOTES, 0, 2), run(ENV_VALUE, 10, 64)],
    needs: LETTER_AND_DIGIT,
    shown: 1,
    tail: { of: ENV_VALUE },
  },
  {
    id: 'npmrc-secret',
    anchors: [':_authToken=', ':_password=', ':_auth=', '\n_auth='],
    body: [run(alphabet(/[^\s"'`${}[\]]/), 8, 8)],
    shown: 0,
    tail: { of: alphabet(/[^\s"'`]/) },
  },
  {
    id: 'docker-auth',
    anchors: ['auth"', 'auth\\'],
    body: [run(NAMED, 1, 14), run(BASE64, 16, 40)],
    needs: /(?=.*[A-Z])(?=.*[a-z])(?=.*\d)/,
    shown: 1,
    tail: { of: PADDED },
  },
  {
    id: 'netrc-password',
    anchors: ['password '],
    body: [run(PASSWORD, 3, 64)],
    after: /(?<=\blogin\s{1,4}\S{1,64}\s{1,4})/y,
    shown: 0,
    tail: { of: PASSWORD },
  },
  { id: 'signed-cookie', anchors: ['_gitlab_session='], body: [run(HEX, 32, 32)], shown: 0, tail: { of: HEX } },
];

function run(of: Uint8Array, min: number, max: number): { of: Uint8Array; min: number; max: number } {
  return { of, min, max };
}
