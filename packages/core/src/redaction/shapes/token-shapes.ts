// The token formats that services document. Each begins with a prefix that only its tokens have.
//
// Minimum lengths are a little shorter than documented, because services change theirs without notice and the prefix
// is unique. If the prefix is short or an ordinary word, the length is exact and the token must be at a word
// boundary.
//
// If two shapes match the same text, the earlier one names it.

import {
  type Alphabet,
  type Run,
  type Shape,
  ALNUM,
  shapeAlphabet,
  BASE64,
  DOTTED,
  HEX,
  PADDED,
  UPPER,
  WORD,
} from './pattern.ts';

// A letter before the token is ignored if it belongs to an escape: `\n`, `\u0022`, `%3D`, a terminal colour.
const ESCAPE = String.raw`\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]{0,12}m`;
const EDGE = new RegExp(String.raw`(?<![A-Za-z0-9_])|(?<=${ESCAPE})`, 'y');
// Base64 contains any three letters by chance, so the shortest anchors must not stand inside base64.
const BASE64_EDGE = new RegExp(String.raw`(?<![\w+/-])|(?<=${ESCAPE})`, 'y');
// With this, a run of word characters is read once, and not once for each anchor in it.
const WORD_EDGE = new RegExp(String.raw`(?<![\w-])|(?<=${ESCAPE})`, 'y');

const UPPER_BASE32 = shapeAlphabet(/[A-Z0-9]/);
const LOWER = shapeAlphabet(/[a-z0-9]/);
const SLASHED = shapeAlphabet(/[\w/-]/);
const TILDED = shapeAlphabet(/[\w.~-]/);
const FLY = shapeAlphabet(/[\w+/=,-]/);
const ALL_HEX = Array.from('0123456789abcdef');

// A Discord token begins with its owner's id, a decimal number, in base64: these are the encodings of two digits.
const DISCORD_STARTS = Array.from({ length: 90 }, (_, index) => btoa(String(index + 10)).slice(0, 3));

export const TOKEN_SHAPES: readonly Shape[] = [
  // model providers
  token('anthropic-key', ['sk-ant-'], WORD, 20),
  token('openrouter-key', ['sk-or-v1-'], WORD, 32),
  token('langfuse-secret-key', ['sk-lf-'], WORD, 32),
  token('openai-project-key', ['sk-proj-'], WORD, 20),
  token('openai-service-key', ['sk-svcacct-'], WORD, 20),
  token('openai-admin-key', ['sk-admin-'], WORD, 20),
  { ...token('openai-key', ['sk-'], ALNUM, 32), after: EDGE },
  token('groq-key', ['gsk_'], ALNUM, 40),
  token('xai-key', ['xai-'], ALNUM, 60),
  token('perplexity-key', ['pplx-'], ALNUM, 40),
  { ...token('replicate-token', ['r8_'], ALNUM, 36), after: EDGE },
  { ...token('huggingface-token', ['hf_'], ALNUM, 30), after: EDGE },
  token('huggingface-organization-token', ['api_org_'], ALNUM, 30),
  { ...token('fireworks-key', ['fw_'], ALNUM, 24), after: EDGE },
  token('together-key', ['tgp_v1_'], WORD, 30),
  { ...token('cerebras-key', ['csk-'], LOWER, 40), after: EDGE },
  token('nvidia-key', ['nvapi-'], WORD, 48),
  token('langsmith-key', ['lsv2_pt_', 'lsv2_sk_'], WORD, 36),
  token('pinecone-key', ['pcsk_'], WORD, 40),
  token('jina-key', ['jina_'], WORD, 50),
  token('tavily-key', ['tvly-'], WORD, 24),
  { ...token('elevenlabs-key', ['sk_'], HEX, 48), after: EDGE },
  // clouds
  { ...token('aws-access-key-id', ['AKIA', 'ASIA', 'ABIA'], UPPER, 16), after: EDGE },
  token('aws-session-token', ['IQoJb3JpZ2luX2Vj', 'FwoGZXIvYXdzE'], PADDED, 60),
  token('aws-bedrock-key', ['ABSKQmVkcm9ja0FQSUtleS', 'bedrock-api-key-'], PADDED, 32),
  { ...token('google-api-key', ['AIza'], WORD, 35), after: WORD_EDGE },
  token('google-client-secret', ['GOCSPX-'], WORD, 24),
  { ...token('google-access-token', ['ya29.'], DOTTED, 20), after: EDGE },
  { ...token('google-refresh-token', ['1//0'], WORD, 30), after: EDGE },
  { ...token('google-storage-key', ['GOOG1'], UPPER, 19), after: EDGE },
  { ...token('azure-client-secret', shapeDigits('Q~'), TILDED, 31), after: /(?<=[\w.~-]{3})/y },
  token('digitalocean-token', ['dop_v1_', 'doo_v1_', 'dor_v1_'], HEX, 40),
  token('heroku-token', ['HRKU-'], WORD, 30),
  token('cloudflare-token', ['cfut_', 'cfat_'], ALNUM, 40),
  { ...token('cloudflare-key', ['cfk_'], ALNUM, 40), after: EDGE },
  token('cloudflare-origin-key', ['v1.0-'], HEX, 24, '-', { of: HEX, min: 100, max: 100 }),
  { ...token('vercel-token', ['vcp_', 'vci_', 'vca_', 'vcr_', 'vck_'], ALNUM, 24), after: EDGE },
  { ...token('netlify-token', ['nfp_'], ALNUM, 36), after: EDGE },
  { ...token('render-key', ['rnd_'], ALNUM, 28), after: EDGE },
  token('fly-token', ['FlyV1 fm2_', 'FlyV1 fm1r_', 'FlyV1 fm1a_'], FLY, 40),
  { ...token('fly-macaroon', ['fm2_', 'fm1r_', 'fm1a_'], FLY, 40), after: EDGE },
  { ...token('fly-deploy-token', ['fo1_'], WORD, 40), after: EDGE },
  { ...token('alibaba-access-key-id', ['LTAI'], ALNUM, 16), after: EDGE },
  { ...token('tencent-secret-id', ['AKID'], ALNUM, 32), after: EDGE },
  { ...token('yandex-key', ['AQVN'], WORD, 34), after: WORD_EDGE },
  // source and packages
  token('github-personal-token', ['ghp_'], ALNUM, 30),
  token('github-oauth-token', ['gho_'], ALNUM, 30),
  token('github-user-token', ['ghu_'], ALNUM, 30),
  token('github-server-token', ['ghs_'], ALNUM, 30),
  token('github-refresh-token', ['ghr_'], ALNUM, 30),
  token('github-fine-grained-token', ['github_pat_'], WORD, 40),
  token('gitlab-personal-token', ['glpat-'], DOTTED, 18),
  token('gitlab-deploy-token', ['gldt-'], DOTTED, 18),
  token('gitlab-runner-token', ['glrt-', 'glrtr-'], DOTTED, 18),
  token('gitlab-job-token', ['glcbt-'], DOTTED, 18),
  token('gitlab-trigger-token', ['glptt-'], DOTTED, 18),
  token('gitlab-feed-token', ['glft-', 'glimt-', 'glffct-'], DOTTED, 18),
  token('gitlab-application-token', ['gloas-', 'glsoat-', 'glagent-'], DOTTED, 18),
  token('gitlab-runner-registration', ['GR1348941'], WORD, 18),
  { ...token('bitbucket-password', ['ATBB'], ALNUM, 28), after: EDGE },
  token('atlassian-token', ['ATATT3', 'ATCTT3'], PADDED, 40),
  { ...token('npm-token', ['npm_'], ALNUM, 36), after: EDGE },
  token('pypi-token', ['pypi-AgE'], WORD, 40),
  token('rubygems-key', ['rubygems_'], HEX, 40),
  { ...token('crates-token', ['cio'], ALNUM, 32), after: BASE64_EDGE },
  { ...token('nuget-key', ['oy2'], LOWER, 43), after: BASE64_EDGE },
  token('clojars-token', ['CLOJARS_'], LOWER, 48),
  token('packagist-token', ['packagist_'], WORD, 40),
  token('docker-token', ['dckr_pat_', 'dckr_oat_'], WORD, 20),
  { ...token('artifactory-key', ['AKCp'], ALNUM, 60), after: EDGE },
  token('artifactory-reference-token', ['cmVmdGtuOj'], ALNUM, 40),
  token('circleci-token', ['CCIPAT_', 'CCIPRJ_'], WORD, 30),
  { ...token('buildkite-token', ['bkua_'], ALNUM, 32), after: EDGE },
  { ...token('sonar-token', ['squ_', 'sqp_', 'sqa_'], HEX, 40), after: EDGE },
  token('snyk-token', ['snyk_uat.'], DOTTED, 30),
  { ...token('sourcegraph-token', ['sgp_'], WORD, 40), after: EDGE },
  // messages and mail
  token(
    'slack-token',
    ['xoxb-', 'xoxp-', 'xoxa-', 'xoxr-', 'xoxs-', 'xoxo-', 'xoxc-', 'xoxd-', 'xoxe-', 'xoxe.'],
    DOTTED,
    16,
  ),
  token('slack-app-token', ['xapp-'], WORD, 24),
  {
    ...token(
      'slack-webhook',
      ['hooks.slack.com/services/', 'hooks.slack.com/workflows/', 'hooks.slack.com/triggers/'],
      SLASHED,
      24,
    ),
    shown: 0,
  },
  {
    ...token(
      'discord-token',
      DISCORD_STARTS,
      WORD,
      20,
      '.',
      { of: WORD, min: 6, max: 6 },
      '.',
      fixedShapeRun(WORD, 27),
    ),
    after: WORD_EDGE,
  },
  { ...token('discord-webhook', ['discord.com/api/webhooks/', 'discordapp.com/api/webhooks/'], SLASHED, 40), shown: 0 },
  { ...token('teams-webhook', ['webhook.office.com/webhookb2/'], shapeAlphabet(/[\w/@.-]/), 40), shown: 0 },
  { ...token('telegram-bot-token', [':AA'], WORD, 32), after: /(?<=(?<!\d)\d{8,10})/y },
  { ...token('sendgrid-key', ['SG.'], WORD, 16, '.', fixedShapeRun(WORD, 36)), after: EDGE },
  {
    ...token(
      'twilio-key',
      ALL_HEX.map((digit) => `SK${digit}`),
      HEX,
      31,
    ),
    after: EDGE,
  },
  {
    ...token(
      'twilio-account',
      ALL_HEX.map((digit) => `AC${digit}`),
      HEX,
      31,
    ),
    after: EDGE,
  },
  { ...token('mailgun-key', ['key-'], HEX, 32), after: EDGE },
  token('brevo-key', ['xkeysib-', 'xsmtpsib-'], WORD, 60),
  { ...token('resend-key', ['re_'], ALNUM, 8, '_', fixedShapeRun(ALNUM, 20)), after: EDGE },
  { ...token('mandrill-key', ['md-'], WORD, 22), after: WORD_EDGE, needs: /(?=.*\d)(?=.*[A-Z])/ },
  // payment and shops
  token('stripe-key', ['sk_live_', 'rk_live_', 'sk_test_', 'rk_test_'], ALNUM, 16),
  token('stripe-webhook-secret', ['whsec_'], BASE64, 24),
  token('square-token', ['sq0atp-', 'sq0csp-', 'sq0idp-'], WORD, 20),
  { ...token('square-access-token', ['EAAA'], WORD, 60), after: BASE64_EDGE, needs: /[g-z]/ },
  { ...token('facebook-token', ['EAA'], ALNUM, 90), after: BASE64_EDGE },
  token('shopify-token', ['shpat_', 'shpca_', 'shppa_', 'shpss_', 'shptka_'], ALNUM, 28),
  token('paypal-token', ['access_token$production$', 'access_token$sandbox$'], shapeAlphabet(/[a-z0-9$]/), 32),
  token('plaid-token', ['access-sandbox-', 'access-development-', 'access-production-'], WORD, 32),
  token('razorpay-key', ['rzp_live_', 'rzp_test_'], ALNUM, 14),
  token('flutterwave-key', ['FLWSECK-', 'FLWSECK_TEST-', 'FLWSECK_LIVE-'], WORD, 12),
  token('shippo-token', ['shippo_live_', 'shippo_test_'], HEX, 36),
  token('easypost-key', ['EZAK', 'EZTK'], ALNUM, 50),
  // data
  { ...token('databricks-token', ['dapi'], HEX, 32), after: EDGE },
  token('planetscale-token', ['pscale_tkn_', 'pscale_pw_', 'pscale_oauth_'], TILDED, 30),
  { ...token('supabase-token', ['sbp_'], HEX, 40), after: EDGE },
  token('supabase-secret-key', ['sb_secret_'], WORD, 24),
  { ...token('neon-key', ['napi_'], LOWER, 48), after: EDGE },
  token('mongodb-atlas-secret', ['mdb_sa_sk_'], WORD, 30),
  { ...token('airtable-token', ['pat'], ALNUM, 14, '.', fixedShapeRun(HEX, 64)), after: EDGE },
  token('hubspot-token', ['pat-na1-', 'pat-na2-', 'pat-eu1-', 'pat-ap1-'], WORD, 32),
  // operations
  token('vault-token', ['hvs.', 'hvb.', 'hvr.'], WORD, 24),
  token('terraform-token', ['.atlasv1.'], PADDED, 50),
  { ...token('pulumi-token', ['pul-'], HEX, 40), after: EDGE },
  token('doppler-token', ['dp.pt.', 'dp.st.', 'dp.ct.', 'dp.sa.', 'dp.scim.', 'dp.audit.'], DOTTED, 40),
  token('onepassword-token', ['ops_eyJ'], PADDED, 60),
  token('age-secret-key', ['AGE-SECRET-KEY-1'], UPPER_BASE32, 50),
  token('newrelic-key', ['NRAK-', 'NRIQ-', 'NRII-', 'NRRA-', 'NRJS-', 'NRSP-'], WORD, 19),
  token('sentry-token', ['sntrys_', 'sntryu_'], PADDED, 40),
  token('grafana-token', ['glc_', 'glsa_'], PADDED, 32),
  token('grafana-key', ['eyJrIjoi'], PADDED, 60),
  token('dynatrace-token', ['dt0c01.', 'dt0s01.'], UPPER, 24, '.', fixedShapeRun(UPPER, 48)),
  token('tailscale-key', ['tskey-'], WORD, 20),
  token('honeycomb-key', ['hcaik_', 'hcbik_', 'hcaic_', 'hcamk_'], ALNUM, 40),
  token('posthog-key', ['phx_'], ALNUM, 40),
  // work
  token('linear-token', ['lin_api_', 'lin_oauth_'], ALNUM, 32),
  token('notion-token', ['ntn_'], ALNUM, 40),
  { ...token('notion-secret', ['secret_'], ALNUM, 43), after: EDGE },
  token('figma-token', ['figd_', 'figu_'], WORD, 30),
  token('postman-key', ['PMAK-'], HEX, 24, '-', fixedShapeRun(HEX, 30)),
  token('mapbox-secret-token', ['sk.eyJ1'], DOTTED, 40),
  token('contentful-token', ['CFPAT-'], WORD, 40),
  token('typeform-token', ['tfp_'], WORD, 40),
  { ...token('dropbox-token', ['sl.'], WORD, 100), after: EDGE },
  token('readme-key', ['rdme_'], LOWER, 60),
  token('wakatime-key', ['waka_'], WORD, 36),
  // any service
  {
    id: 'jwt',
    anchors: ['eyJ'],
    body: [{ of: WORD, min: 14, max: 320 }, '.', fixedShapeRun(WORD, 16)],
    after: WORD_EDGE,
    tail: { of: DOTTED },
  },
];

function token(id: string, anchors: readonly string[], of: Alphabet, length: number, ...rest: (string | Run)[]): Shape {
  // Only the last run has no upper length; one before a separator is bounded.
  const first = rest.length === 0 ? fixedShapeRun(of, length) : { of, min: length, max: length + 12 };
  const last = rest.at(-1) ?? first;
  return { id, anchors, body: [first, ...rest], ...(typeof last === 'string' ? {} : { tail: { of: last.of } }) };
}

function fixedShapeRun(of: Alphabet, length: number): Run {
  return { of, min: length, max: length };
}

function shapeDigits(suffix: string): string[] {
  return Array.from('0123456789', (digit) => `${digit}${suffix}`);
}
