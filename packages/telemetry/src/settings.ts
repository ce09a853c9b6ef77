// Where telemetry goes, from the standard environment variables of OpenTelemetry.

import type { Resource } from './otlp.ts';

const TIMEOUT_MS_DEFAULT = 10_000;

export type Target = { readonly url: string; readonly headers: Readonly<Record<string, string>> };

export type TelemetrySettings = {
  readonly traces: Target | undefined;
  readonly metrics: Target | undefined;
  readonly timeoutMs: number;
  readonly resource: Resource;
  readonly content: boolean;
};

type Env = Readonly<Record<string, string | undefined>>;

/** `problem` is a sentence for the user; telemetry is off then. Undefined if no variable asks for telemetry. */
export function telemetrySettings(env: Env): TelemetrySettings | { readonly problem: string } | undefined {
  if (env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined;
  const base = telemetryVariable(env, 'OTEL_EXPORTER_OTLP_ENDPOINT');
  const urls = {
    traces: telemetryUrl(env, 'TRACES', base),
    metrics: telemetryUrl(env, 'METRICS', base),
  };
  if (urls.traces === undefined && urls.metrics === undefined) return undefined;
  for (const url of Object.values(urls))
    if (url !== undefined && !/^https?:\/\/[^/\s]+/i.test(url))
      return { problem: `'${url}' in OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address` };
  if (telemetryVariable(env, 'OTEL_EXPORTER_OTLP_PROTOCOL') === 'grpc')
    return {
      problem: 'OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and drover sends http/json only: name the HTTP port (4318)',
    };
  const timeout = Number(telemetryVariable(env, 'OTEL_EXPORTER_OTLP_TIMEOUT') ?? TIMEOUT_MS_DEFAULT);
  const target = (url: string | undefined, signal: string) =>
    url === undefined ? undefined : { url, headers: telemetryHeaders(env, signal) };
  return {
    traces: target(urls.traces, 'TRACES'),
    metrics: target(urls.metrics, 'METRICS'),
    timeoutMs: Number.isFinite(timeout) && timeout > 0 ? timeout : TIMEOUT_MS_DEFAULT,
    resource: {
      ...telemetryPairs(telemetryVariable(env, 'OTEL_RESOURCE_ATTRIBUTES')),
      'service.name':
        telemetryVariable(env, 'OTEL_SERVICE_NAME') ??
        telemetryPairs(telemetryVariable(env, 'OTEL_RESOURCE_ATTRIBUTES'))['service.name'] ??
        'drover',
    },
    content: env['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT']?.toLowerCase() === 'true',
  };
}

function telemetryUrl(env: Env, signal: string, base: string | undefined): string | undefined {
  if (telemetryVariable(env, `OTEL_${signal}_EXPORTER`) === 'none') return undefined;
  const own = telemetryVariable(env, `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`);
  return own ?? (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/${signal.toLowerCase()}`);
}

function telemetryHeaders(env: Env, signal: string): Readonly<Record<string, string>> {
  return {
    ...telemetryPairs(telemetryVariable(env, 'OTEL_EXPORTER_OTLP_HEADERS')),
    ...telemetryPairs(telemetryVariable(env, `OTEL_EXPORTER_OTLP_${signal}_HEADERS`)),
  };
}

/** Reads `a=1,b=2`. Values may be percent-encoded. */
function telemetryPairs(text: string | undefined): Readonly<Record<string, string>> {
  const found = (text ?? '').split(',').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at < 1 ? [] : [[pair.slice(0, at).trim(), decodeTelemetryValue(pair.slice(at + 1).trim())] as const];
  });
  return Object.fromEntries(found);
}

function decodeTelemetryValue(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

function telemetryVariable(env: Env, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === undefined || text === '' ? undefined : text;
}
