// Shapes of secrets that are recognised by their context: key blocks, passwords in addresses, headers, connection
// strings, assignments.
//
// The name of a secret stays readable; only its value is redacted. Anchors end close to the secret, so a stream holds
// back little text.

import { type Shape, shapeAlphabet, BASE64, HEX, PADDED } from './pattern.ts';

const KEY_KINDS = ['', 'RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED ', 'ED25519 ', 'ANY '];
const NAMED = shapeAlphabet(/[\s:=>"'\\]/); // between a name and its value, in YAML, JSON, TOML, code and headers
const QUOTES = shapeAlphabet(/["'\\]/);
const CREDENTIAL = shapeAlphabet(/[\w.~+/=-]/);
const QUERY_VALUE = shapeAlphabet(/[\w.~%+-]/);
const USER = shapeAlphabet(/[^\s"'`<>/?#@:\\()[\]{},;|]/);
const URL_PASSWORD = shapeAlphabet(/[^\s"'`<>/@\\()[\]{},;|]/);
const PASSWORD = shapeAlphabet(/[^\s;"'`<>\\{}[\]()]/);
const ENV_VALUE = shapeAlphabet(/[\w+/~!#%^&*@-]/);
// Separators between two lines of a key: line breaks, escaped or not, indentation, quotes, line numbers, diff and quote
// marks.
const KEY_BREAK = shapeAlphabet(/[\s\\nr0-9+|>#*"',-]/);
const KEY_TEXT = shapeAlphabet(/[\s\w\\+/=|>#*:"',-]/);
const PGP_TEXT = shapeAlphabet(/[\s\w\\+/=|>#*:"',.()-]/);

const LETTER_AND_DIGIT = /(?=.*[A-Za-z])(?=.*\d)/;

export const CONTEXT_SHAPES: readonly Shape[] = [
  {
    id: 'private-key',
    anchors: KEY_KINDS.map((kind) => `-----BEGIN ${kind}PRIVATE KEY-----`),
    body: [shapeRun(KEY_BREAK, 1, 24), shapeRun(BASE64, 16, 16)],
    tail: { of: KEY_TEXT, until: '-----END' },
  },
  {
    // The two header lines of an encrypted key contain characters that keys lack.
    id: 'private-key',
    anchors: ['DEK-Info: '],
    body: [
      shapeRun(shapeAlphabet(/[A-Z0-9-]/), 5, 24),
      ',',
      shapeRun(shapeAlphabet(/[0-9A-Fa-f]/), 16, 64),
      shapeRun(KEY_BREAK, 1, 24),
      shapeRun(BASE64, 16, 16),
    ],
    tail: { of: KEY_TEXT, until: '-----END' },
  },
  {
    id: 'private-key',
    anchors: ['-----BEGIN PGP PRIVATE KEY BLOCK-----'],
    body: [shapeRun(PGP_TEXT, 64, 64)],
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
    body: [shapeRun(BASE64, 32, 32)],
    tail: { of: KEY_TEXT, until: '-----END' },
  },
  {
    id: 'putty-key',
    anchors: ['Private-Lines: '],
    body: [shapeRun(shapeAlphabet(/\d/), 1, 4), shapeRun(KEY_BREAK, 1, 24), shapeRun(BASE64, 16, 16)],
    tail: { of: KEY_TEXT, until: 'Private-MAC' },
    shown: 1,
  },
  {
    id: 'wireguard-key',
    anchors: ['PrivateKey = ', 'PrivateKey=', 'PresharedKey = ', 'PresharedKey='],
    body: [shapeRun(BASE64, 43, 43), '='],
    shown: 0,
  },

  {
    id: 'url-password',
    anchors: ['://', String.raw`:\/\/`],
    body: [shapeRun(USER, 0, 100), ':', shapeRun(URL_PASSWORD, 3, 200)],
    closing: '@',
    needs: /^[^$]/, // a shell variable is not a secret
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
    body: [shapeRun(QUERY_VALUE, 16, 40)],
    needs: LETTER_AND_DIGIT,
    shown: 0,
    tail: { of: QUERY_VALUE },
  },
  {
    id: 'connection-password',
    anchors: ['Password=', 'password=', 'PASSWORD=', 'Pwd=', 'pwd=', 'PWD='],
    body: [shapeRun(PASSWORD, 3, 64)],
    after: /(?<=;\s{0,2}|\b(?:host|hostaddr|user|dbname|port)=[^\s=]{1,48}\s{1,2})/y,
    shown: 0,
    tail: { of: PASSWORD },
  },
  {
    id: 'azure-account-key',
    anchors: ['AccountKey=', 'SharedAccessKey='],
    body: [shapeRun(BASE64, 32, 32)],
    shown: 0,
    tail: { of: PADDED },
  },
  {
    id: 'authorization',
    anchors: ['Basic ', 'basic ', 'Bearer ', 'bearer ', 'Token ', 'token ', 'ApiKey ', 'SSWS ', 'Digest '],
    body: [shapeRun(CREDENTIAL, 8, 8)],
    after: /(?<=authorization["'\\]{0,4}\s{0,3}[:=,]\s{0,3}["'`\\]{0,4})/iy,
    shown: 0,
    tail: { of: CREDENTIAL },
  },
  {
    id: 'bearer-token',
    anchors: ['Bearer ', 'bearer '],
    body: [shapeRun(CREDENTIAL, 20, 64)],
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
    body: [shapeRun(NAMED, 1, 10), shapeRun(CREDENTIAL, 16, 16)],
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
    body: [shapeRun(NAMED, 1, 10), shapeRun(BASE64, 40, 40)],
    needs: /(?=.*[A-Z])(?=.*[a-z])/,
    shown: 1,
    tail: { of: BASE64 },
  },
  {
    id: 'client-secret',
    anchors: ['client_secret', 'clientSecret', 'CLIENT_SECRET'],
    body: [shapeRun(NAMED, 1, 10), shapeRun(CREDENTIAL, 16, 40)],
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
    body: [shapeRun(QUOTES, 0, 2), shapeRun(ENV_VALUE, 10, 64)],
    needs: LETTER_AND_DIGIT,
    shown: 1,
    tail: { of: ENV_VALUE },
  },
  {
    id: 'npmrc-secret',
    anchors: [':_authToken=', ':_password=', ':_auth=', '\n_auth='],
    body: [shapeRun(shapeAlphabet(/[^\s"'`${}[\]]/), 8, 8)],
    shown: 0,
    tail: { of: shapeAlphabet(/[^\s"'`]/) },
  },
  {
    id: 'docker-auth',
    anchors: ['auth"', 'auth\\'],
    body: [shapeRun(NAMED, 1, 14), shapeRun(BASE64, 16, 40)],
    needs: /(?=.*[A-Z])(?=.*[a-z])(?=.*\d)/,
    shown: 1,
    tail: { of: PADDED },
  },
  {
    id: 'netrc-password',
    anchors: ['password '],
    body: [shapeRun(PASSWORD, 3, 64)],
    after: /(?<=\blogin\s{1,4}\S{1,64}\s{1,4})/y,
    shown: 0,
    tail: { of: PASSWORD },
  },
  { id: 'signed-cookie', anchors: ['_gitlab_session='], body: [shapeRun(HEX, 32, 32)], shown: 0, tail: { of: HEX } },
];

function shapeRun(of: Uint8Array, min: number, max: number): { of: Uint8Array; min: number; max: number } {
  return { of, min, max };
}
