import { writeFileSync } from 'node:fs'
import { argv } from 'node:process'
import {
  COMMON_ERRORS,
  DEFAULTS,
  ERRORS,
  GUARDED_ERRORS,
  isGoverned,
  MODEL_SETTINGS,
  ROUTES,
  SECRET_VARIABLES,
  SETTINGS,
  UPSTREAM_SETTINGS,
  GRAPH_SETTINGS,
  type Route,
} from '@airlock/contract'
import { generatePython } from './generate-python.ts'

/** Documentation, and the generated part of the Python client, from tables in `contract`: path below the repository → text. */
export function generateDocs(): ReadonlyMap<string, string> {
  return new Map([
    ['docs/errors.md', errors()],
    ['docs/configuration.md', configuration()],
    ['docs/operations.md', operations()],
    ...generatePython(),
  ])
}

if (argv[1] === import.meta.filename)
  for (const [path, text] of generateDocs()) writeFileSync(new URL(`../${path}`, import.meta.url), text)

function errors(): string {
  const rows = Object.entries(ERRORS).map(([code, row]) => [
    `\`${code}\``,
    `${row.status}`,
    row.retryable ? 'yes' : 'no',
    row.message,
    row.hint,
    row.fixedBy,
  ])
  return document('Errors', [
    'Every error of the API is `{"error": {"code", "message", "hint", "retryable", "requestId"}}`. The code is what programs',
    'compare; message and hint are for people, and the message may name the field or path that is meant. The SDK throws an',
    'error with the same fields, and the CLI prints them. *Retryable* errors may go away by themselves: wait as long as',
    '`Retry-After` says, where it is given.',
    '',
    ...table(['code', 'status', 'retryable', 'message', 'hint', 'fixed by'], rows),
  ])
}

function configuration(): string {
  const settings = Object.entries(SETTINGS).map(([key, { schema, about }]) => [
    `\`${key}\``,
    `\`AIRLOCK_${key.toUpperCase()}\``,
    byDefault(schema.safeParse(undefined)),
    about,
  ])
  const limits = Object.entries(DEFAULTS).map(([key, bounds]) => [
    `\`${key}\``,
    amount(key, bounds.default),
    amount(key, bounds.min),
    amount(key, bounds.max),
  ])
  return document('Configuration', [
    'A server reads `airlock.toml` and the environment; the environment wins. The file is the one that `AIRLOCK_CONFIG` names,',
    'else `airlock.toml` in the home, else in the working directory. An unknown key is an error.',
    '',
    ...table(['key', 'variable', 'default', 'what it is'], settings),
    '',
    'What holds a secret is read from the environment alone, and only the process that needs it gets it:',
    '',
    ...table(
      ['variable', 'what it is'],
      Object.entries(SECRET_VARIABLES).map(([name, about]) => [`\`${name}\``, about]),
    ),
    '',
    'Clients (SDK and CLI) read `AIRLOCK_URL` and `AIRLOCK_API_KEY`. Without a key they look for `developer.key` in the home of',
    'a server on the same machine, which `AIRLOCK_HOME` names when it is not the usual one.',
    '',
    ...upstreams(),
    '',
    ...graphs(),
    '',
    '## Limits of a sandbox and of a command',
    '',
    'What a caller gets without asking, and how far asking goes.',
    '',
    ...table(['limit', 'default', 'least', 'most'], limits),
  ])
}

function upstreams(): readonly string[] {
  const rows = tableRows
  return [
    '## Upstreams of models',
    '',
    '`[llm.upstream.NAME]` is a provider of models. It is in `airlock.toml` alone: tables have no variables. A server with an',
    'upstream starts one process more, `keys`, which alone holds the keys and dials providers',
    '([decision 0051](decisions/0051-keys-in-one-process.md)). Programs in sandboxes reach them by a door: [models](models.md).',
    '',
    '```toml',
    '[llm.upstream.main]',
    'kind = "openai"',
    'base_url = "https://api.openai.com/v1"',
    'key_file = "/etc/airlock/main.key"',
    '',
    '[llm.upstream.main.models."gpt-5"]',
    'context_window = 400000',
    'max_output = 128000',
    'price = { input = "1.25", output = "10", cache_read = "0.125", cache_write = "1.25" }',
    '',
    '[llm.upstream.main.aliases]',
    'fast = "gpt-5"',
    '```',
    '',
    'A key in this file is an error, and so is a key file that others may read: `chmod 600` it.',
    '',
    ...table(['key of an upstream', 'default', 'what it is'], rows(UPSTREAM_SETTINGS)),
    '',
    ...table(['key of a model', 'default', 'what it is'], rows(MODEL_SETTINGS)),
  ]
}

function tableRows(settings: typeof UPSTREAM_SETTINGS | typeof MODEL_SETTINGS | typeof GRAPH_SETTINGS) {
  return Object.entries(settings).map(([key, { schema, about }]) => [
    `\`${key}\``,
    byDefault(schema.safeParse(undefined)),
    about,
  ])
}

function graphs(): readonly string[] {
  return [
    '## Agent programs',
    '',
    '`[graph.NAME]` is an agent program that all tenants have as `sandbox:NAME`. It is in `airlock.toml` alone. What it must do: [runs](runs.md).',
    '',
    '```toml',
    '[graph.helper]',
    'description = "Answers questions about our handbook."',
    'template = "helper"',
    'argv = ["node", "/opt/helper/main.mjs"]',
    'models = ["fast"]',
    'dollars = 0.5',
    '```',
    '',
    ...table(['key of an agent program', 'default', 'what it is'], tableRows(GRAPH_SETTINGS)),
  ]
}

function operations(): string {
  const rows = Object.entries<Route>(ROUTES).map(([name, route]) => [
    `\`${name}\``,
    `\`${route.method} ${route.path}\``,
    route.roles === 'public' ? 'everybody' : route.roles.join(', '),
    route.effect === undefined ? '' : `\`${route.effect}\``,
    route.effect !== undefined && isGoverned(route.effect) ? 'asked' : '',
    [...new Set(route.errors)].map((code) => `\`${code}\``).join(' '),
    route.summary,
  ])
  return document('Operations', [
    'Every operation of the API, who may call it, the audit point of its effect, and the errors of its own. Any operation may',
    `also answer ${COMMON_ERRORS.map((code) => `\`${code}\``).join(', ')}; see [errors](errors.md).`,
    'Where Guardian is asked first, rules of every kind may hold it up; the answer is then one of',
    `${GUARDED_ERRORS.map((code) => `\`${code}\``).join(', ')}. See [guardian](guardian.md).`,
    '',
    ...table(['operation', 'route', 'roles', 'audit point', 'Guardian', 'errors', 'what it does'], rows),
  ])
}

function document(title: string, lines: readonly string[]): string {
  const origin = '<!-- Made by `npm run docs:generate` from packages/contract: edit there. -->'
  return [`# ${title}`, '', origin, '', ...lines, ''].join('\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`).replaceAll('<', '&lt;')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)]
}

function byDefault(parsed: { readonly data?: unknown }): string {
  return parsed.data === undefined ? '' : `\`${JSON.stringify(parsed.data).replaceAll('"', '')}\``
}

/** The unit is the end of the name. */
function amount(name: string, value: number | null): string {
  if (value === null) return 'none'
  if (name.endsWith('Ms')) return duration(value)
  return name.endsWith('Bytes') ? bytes(value) : `${value}`
}

function duration(ms: number): string {
  if (ms >= 3_600_000) return `${ms / 3_600_000} h`
  if (ms >= 60_000) return `${ms / 60_000} min`
  return ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`
}

function bytes(value: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = value === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10))
  return `${value / 1024 ** power} ${units[power]}`
}
