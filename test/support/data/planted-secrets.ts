// One made-up secret per known shape, assembled at run time so that no file holds a whole one.
//
// Each follows the documented format of its service: prefix, alphabet, length.

export type Planted = {
  readonly id: string;
  readonly text: string; // the text in a file or an answer
  readonly secret: string; // the part that must not appear anywhere
};

const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LOWER = UPPER.toLowerCase();
const DIGITS = '0123456789';
const HEX = '0123456789abcdef';
const ALNUM = UPPER + LOWER + DIGITS;
const WORD = `${ALNUM}_-`;
const BASE64 = `${ALNUM}+/`;
const UUID = '8-4-4-4-12';

/** Characters of an alphabet, determined by the seed; each kind of character occurs early. */
export function fill(alphabet: string, length: number, seed: string): string {
  let state = Array.from(seed).reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 2_147_483_647, 7);
  const next = (): number => (state = (state * 48_271) % 2_147_483_647);
  const mixed = ['a', '7', 'Q'].filter((char) => alphabet.includes(char)).join('');
  return (mixed + Array.from({ length }, () => alphabet[next() % alphabet.length]).join('')).slice(0, length);
}

const uuid = (seed: string): string =>
  UUID.split('-')
    .map((length) => fill(HEX, Number(length), seed + length))
    .join('-');

const jwtPart = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const pem = (kind: string, seed: string): string => {
  const lines = Array.from({ length: 12 }, (_, line) => fill(BASE64, 64, seed + line));
  return ['-----BEGIN', `${kind}-----\n${lines.join('\n')}\n-----END`, `${kind}-----`].join(' ');
};

// id, prefix, alphabet and length, or the rest after the prefix
const TOKENS: readonly (readonly [string, string, string, number] | readonly [string, string, string])[] = [
  ['anthropic-key', 'sk-ant-api03-', WORD, 95],
  ['openrouter-key', 'sk-or-v1-', HEX, 64],
  ['langfuse-secret-key', 'sk-lf-', uuid('langfuse')],
  ['openai-project-key', 'sk-proj-', WORD, 150],
  ['openai-service-key', 'sk-svcacct-', WORD, 150],
  ['openai-admin-key', 'sk-admin-', WORD, 120],
  ['openai-key', 'sk-', ALNUM, 48],
  ['groq-key', 'gsk_', ALNUM, 52],
  ['xai-key', 'xai-', ALNUM, 80],
  ['perplexity-key', 'pplx-', ALNUM, 48],
  ['replicate-token', 'r8_', ALNUM, 37],
  ['huggingface-token', 'hf_', ALNUM, 34],
  ['huggingface-organization-token', 'api_org_', ALNUM, 34],
  ['fireworks-key', 'fw_', ALNUM, 24],
  ['together-key', 'tgp_v1_', WORD, 43],
  ['cerebras-key', 'csk-', LOWER + DIGITS, 48],
  ['nvidia-key', 'nvapi-', WORD, 64],
  ['langsmith-key', 'lsv2_pt_', `${fill(HEX, 32, 'ls')}_${fill(HEX, 10, 'ls2')}`],
  ['pinecone-key', 'pcsk_', `${fill(ALNUM, 6, 'pc')}_${fill(ALNUM, 63, 'pc2')}`],
  ['jina-key', 'jina_', WORD, 60],
  ['tavily-key', 'tvly-', ALNUM, 32],
  ['elevenlabs-key', 'sk_', HEX, 48],
  ['aws-access-key-id', 'AKIA', UPPER + '234567', 16],
  ['aws-access-key-id', 'ASIA', UPPER + '234567', 16],
  ['aws-session-token', 'IQoJb3JpZ2luX2Vj', BASE64, 340],
  ['aws-bedrock-key', 'ABSKQmVkcm9ja0FQSUtleS', BASE64, 110],
  ['google-api-key', 'AIza', WORD, 35],
  ['google-client-secret', 'GOCSPX-', WORD, 28],
  ['google-access-token', 'ya29.', WORD, 160],
  ['google-refresh-token', '1//0', WORD, 98],
  ['google-storage-key', 'GOOG1E', UPPER + DIGITS, 56],
  ['digitalocean-token', 'dop_v1_', HEX, 64],
  ['heroku-token', 'HRKU-', uuid('heroku')],
  ['cloudflare-token', 'cfut_', ALNUM, 48],
  ['cloudflare-key', 'cfk_', ALNUM, 48],
  ['cloudflare-origin-key', 'v1.0-', `${fill(HEX, 24, 'cf')}-${fill(HEX, 146, 'cf2')}`],
  ['vercel-token', 'vcp_', ALNUM, 56],
  ['netlify-token', 'nfp_', ALNUM, 36],
  ['render-key', 'rnd_', ALNUM, 28],
  ['fly-token', 'FlyV1 fm2_', BASE64, 200],
  ['fly-macaroon', 'fm2_', BASE64, 200],
  ['fly-deploy-token', 'fo1_', WORD, 43],
  ['alibaba-access-key-id', 'LTAI', ALNUM, 20],
  ['tencent-secret-id', 'AKID', ALNUM, 32],
  ['yandex-key', 'AQVN', WORD, 36],
  ['github-personal-token', 'ghp_', ALNUM, 36],
  ['github-oauth-token', 'gho_', ALNUM, 36],
  ['github-user-token', 'ghu_', ALNUM, 36],
  ['github-server-token', 'ghs_', ALNUM, 36],
  ['github-refresh-token', 'ghr_', ALNUM, 76],
  ['github-fine-grained-token', 'github_pat_', `${fill(ALNUM, 22, 'gh')}_${fill(ALNUM, 59, 'gh2')}`],
  ['gitlab-personal-token', 'glpat-', WORD, 20],
  ['gitlab-deploy-token', 'gldt-', WORD, 20],
  ['gitlab-runner-token', 'glrt-', WORD, 20],
  ['gitlab-job-token', 'glcbt-', `64_${fill(WORD, 20, 'glcbt')}`],
  ['gitlab-trigger-token', 'glptt-', HEX, 40],
  ['gitlab-feed-token', 'glft-', WORD, 20],
  ['gitlab-application-token', 'gloas-', HEX, 64],
  ['gitlab-runner-registration', 'GR1348941', WORD, 20],
  ['bitbucket-password', 'ATBB', ALNUM, 32],
  ['atlassian-token', 'ATATT3', `xFfGF0${fill(WORD, 176, 'at')}=${fill(HEX.toUpperCase(), 8, 'at2')}`],
  ['npm-token', 'npm_', ALNUM, 36],
  ['pypi-token', 'pypi-AgE', `IcHlwaS5vcmc${fill(WORD, 150, 'pypi')}`],
  ['rubygems-key', 'rubygems_', HEX, 48],
  ['crates-token', 'cio', ALNUM, 32],
  ['nuget-key', 'oy2', LOWER + DIGITS, 43],
  ['clojars-token', 'CLOJARS_', LOWER + DIGITS, 60],
  ['packagist-token', 'packagist_', HEX, 68],
  ['docker-token', 'dckr_pat_', WORD, 27],
  ['artifactory-key', 'AKCp', ALNUM, 69],
  ['artifactory-reference-token', 'cmVmdGtuOj', ALNUM, 54],
  ['circleci-token', 'CCIPAT_', `${fill(ALNUM, 22, 'cci')}_${fill(HEX, 40, 'cci2')}`],
  ['buildkite-token', 'bkua_', HEX, 40],
  ['sonar-token', 'squ_', HEX, 40],
  ['snyk-token', 'snyk_uat.', `${fill(HEX, 8, 'sn')}.${fill(WORD, 60, 'sn2')}`],
  ['sourcegraph-token', 'sgp_', HEX, 40],
  ['slack-token', 'xoxb-', `${fill(DIGITS, 12, 'xo')}-${fill(DIGITS, 13, 'xo2')}-${fill(ALNUM, 24, 'xo3')}`],
  ['slack-app-token', 'xapp-', `1-A0${fill(UPPER, 9, 'xa')}-${fill(DIGITS, 13, 'xa2')}-${fill(HEX, 64, 'xa3')}`],
  ['sendgrid-key', 'SG.', `${fill(WORD, 22, 'sg')}.${fill(WORD, 43, 'sg2')}`],
  ['twilio-key', 'SK', HEX, 32],
  ['twilio-account', 'AC', HEX, 32],
  ['mailgun-key', 'key-', HEX, 32],
  ['brevo-key', 'xkeysib-', `${fill(HEX, 64, 'br')}-${fill(ALNUM, 16, 'br2')}`],
  ['resend-key', 're_', `${fill(ALNUM, 8, 're')}_${fill(ALNUM, 24, 're2')}`],
  ['mandrill-key', 'md-', ALNUM, 22],
  ['stripe-key', 'sk_live_', ALNUM, 24],
  ['stripe-key', 'rk_live_', ALNUM, 99],
  ['stripe-webhook-secret', 'whsec_', ALNUM, 32],
  ['square-token', 'sq0csp-', WORD, 43],
  ['square-access-token', 'EAAA', WORD, 60],
  ['facebook-token', 'EAA', ALNUM, 180],
  ['shopify-token', 'shpat_', HEX, 32],
  ['paypal-token', 'access_token$production$', `${fill(LOWER + DIGITS, 16, 'pp')}$${fill(HEX, 32, 'pp2')}`],
  ['plaid-token', 'access-production-', uuid('plaid')],
  ['razorpay-key', 'rzp_live_', ALNUM, 14],
  ['flutterwave-key', 'FLWSECK-', `${fill(HEX, 32, 'flw')}-X`],
  ['shippo-token', 'shippo_live_', HEX, 40],
  ['easypost-key', 'EZAK', ALNUM, 54],
  ['databricks-token', 'dapi', HEX, 32],
  ['planetscale-token', 'pscale_tkn_', WORD, 43],
  ['supabase-token', 'sbp_', HEX, 40],
  ['supabase-secret-key', 'sb_secret_', WORD, 31],
  ['neon-key', 'napi_', LOWER + DIGITS, 64],
  ['mongodb-atlas-secret', 'mdb_sa_sk_', WORD, 40],
  ['airtable-token', 'pat', `${fill(ALNUM, 14, 'air')}.${fill(HEX, 64, 'air2')}`],
  ['hubspot-token', 'pat-na1-', uuid('hubspot')],
  ['vault-token', 'hvs.', WORD, 95],
  ['terraform-token', '.atlasv1.', WORD, 67],
  ['pulumi-token', 'pul-', HEX, 40],
  ['doppler-token', 'dp.pt.', ALNUM, 43],
  ['onepassword-token', 'ops_eyJ', WORD, 400],
  ['age-secret-key', 'AGE-SECRET-KEY-1', 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58],
  ['newrelic-key', 'NRAK-', UPPER + DIGITS, 27],
  ['sentry-token', 'sntrys_', `eyJpYXQiOjE2${fill(BASE64, 100, 'sn')}_${fill(BASE64, 43, 'sn2')}`],
  ['grafana-token', 'glsa_', `${fill(ALNUM, 32, 'gr')}_${fill(HEX, 8, 'gr2')}`],
  ['grafana-key', 'eyJrIjoi', ALNUM, 92],
  ['dynatrace-token', 'dt0c01.', `${fill(UPPER + DIGITS, 24, 'dt')}.${fill(UPPER + DIGITS, 64, 'dt2')}`],
  ['tailscale-key', 'tskey-auth-', `${fill(ALNUM, 17, 'ts')}-${fill(ALNUM, 32, 'ts2')}`],
  ['honeycomb-key', 'hcaik_', LOWER + DIGITS, 58],
  ['posthog-key', 'phx_', ALNUM, 43],
  ['linear-token', 'lin_api_', ALNUM, 40],
  ['notion-token', 'ntn_', ALNUM, 46],
  ['notion-secret', 'secret_', ALNUM, 43],
  ['figma-token', 'figd_', WORD, 40],
  ['postman-key', 'PMAK-', `${fill(HEX, 24, 'pm')}-${fill(HEX, 34, 'pm2')}`],
  ['mapbox-secret-token', 'sk.eyJ1', `${fill(ALNUM, 60, 'mb')}.${fill(WORD, 22, 'mb2')}`],
  ['contentful-token', 'CFPAT-', WORD, 43],
  ['typeform-token', 'tfp_', WORD, 59],
  ['dropbox-token', 'sl.', WORD, 136],
  ['readme-key', 'rdme_', LOWER + DIGITS, 70],
  ['wakatime-key', 'waka_', uuid('waka')],
  ['private-key', '', pem('RSA PRIVATE KEY', 'rsa')],
  ['private-key', '', pem('OPENSSH PRIVATE KEY', 'ssh')],
  ['private-key', '', pem('PRIVATE KEY', 'pkcs8')],
  ['private-key', '', pem('EC PRIVATE KEY', 'ec')],
  ['private-key', '', pem('PGP PRIVATE KEY BLOCK', 'pgp')],
  ['openssh-key', 'b3BlbnNzaC1rZXktdjE', BASE64, 300],
  [
    'jwt',
    `${jwtPart({ alg: 'HS256', typ: 'JWT' })}.`,
    `${jwtPart({ sub: '1234567890', name: 'Jo', iat: 1_516_239_022 })}.${fill(WORD, 43, 'jwt')}`,
  ],
  ['discord-token', `${Buffer.from('184726359018273645').toString('base64url')}.`, `Gh3kQ1.${fill(WORD, 38, 'dc')}`],
];

// id, readable text before the secret, the secret, readable text after it
const IN_CONTEXT: readonly (readonly [string, string, string, string])[] = [
  ['azure-client-secret', 'a1B', `8Q~${fill(WORD, 34, 'az')}`, ''],
  ['telegram-bot-token', '7123456789', `:AA${fill(WORD, 33, 'tg')}`, ''],
  [
    'slack-webhook',
    'https://hooks.slack.com/services/',
    `T0${fill(UPPER, 8, 'sw')}/B0${fill(UPPER, 9, 'sw2')}/${fill(ALNUM, 24, 'sw3')}`,
    '',
  ],
  ['discord-webhook', 'https://discord.com/api/webhooks/', `${fill(DIGITS, 19, 'dw')}/${fill(WORD, 68, 'dw2')}`, ''],
  [
    'teams-webhook',
    'https://acme.webhook.office.com/webhookb2/',
    `${uuid('tw')}@${uuid('tw2')}/IncomingWebhook/${fill(HEX, 32, 'tw3')}`,
    '',
  ],
  [
    'private-key',
    '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n',
    `DEK-Info: AES-128-CBC,${fill(HEX, 32, 'dek').toUpperCase()}\n\n${fill(BASE64, 64, 'dek2')}\n${fill(BASE64, 64, 'dek3')}\n`,
    '',
  ],
  ['putty-key', 'Private-Lines: 14', `\n${fill(BASE64, 64, 'ppk')}\n${fill(BASE64, 64, 'ppk2')}\n`, 'Private-MAC: 00'],
  ['wireguard-key', 'PrivateKey = ', `${fill(BASE64, 43, 'wg')}=`, '\n'],
  ['url-password', 'postgres://app:', fill(ALNUM, 14, 'url'), '@db.internal:5432/app'],
  ['url-password', 'https://ci-bot:', `p%40ss${fill(ALNUM, 8, 'url2')}!`, '@git.example.com/x.git'],
  ['query-secret', 'https://api.example.com/v1?user=3&access_token=', fill(ALNUM, 32, 'qs'), '&page=2'],
  ['connection-password', 'Server=db;User Id=sa;Password=', `P4$${fill(ALNUM, 10, 'cp')}!`, ';Encrypt=true'],
  ['connection-password', 'host=db port=5432 password=', fill(ALNUM, 12, 'cp2'), ' sslmode=require'],
  [
    'azure-account-key',
    'DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=',
    `${fill(BASE64, 86, 'aa')}==`,
    ';EndpointSuffix=core',
  ],
  ['authorization', 'Authorization: Basic ', Buffer.from(`user:${fill(ALNUM, 12, 'ba')}`).toString('base64'), '\n'],
  ['authorization', '"authorization":"token ', fill(HEX, 40, 'to'), '"'],
  ['bearer-token', 'sent with Bearer ', fill(ALNUM, 40, 'be'), ' as usual'],
  ['key-header', 'x-api-key: ', fill(ALNUM, 40, 'kh'), '\n'],
  ['aws-secret-key', 'aws_secret_access_key = ', fill(BASE64, 40, 'as'), '\n'],
  ['aws-secret-key', '"SecretAccessKey": "', fill(BASE64, 40, 'as2'), '",'],
  ['client-secret', '"client_secret": "', fill(ALNUM, 32, 'cs'), '"'],
  ['env-secret', 'DB_PASSWORD=', fill(ALNUM, 18, 'es'), '\n'],
  ['npmrc-secret', '//registry.example.com/:_authToken=', fill(ALNUM, 40, 'np'), '\n'],
  [
    'docker-auth',
    '{"auths":{"ghcr.io":{"auth": "',
    Buffer.from(`bot:${fill(ALNUM, 20, 'da')}`).toString('base64'),
    '"}}}',
  ],
  ['netrc-password', 'machine git.example.com login bot password ', fill(ALNUM, 16, 'nr'), '\n'],
  ['signed-cookie', '_gitlab_session=', fill(HEX, 32, 'ck'), ';'],
];

export const PLANTED: readonly Planted[] = [
  ...TOKENS.map(([id, prefix, text, length]) => {
    const secret = prefix + (length === undefined ? text : fill(text, length, id));
    return { id, text: secret, secret };
  }),
  ...IN_CONTEXT.map(([id, before, secret, behind]) => ({ id, text: before + secret + behind, secret })),
];
