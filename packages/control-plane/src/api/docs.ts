import { ERRORS, ROUTES, type ErrorCode, type Route } from '@airlock/contract'
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { errorsOf } from './openapi.ts'
import { STYLE } from './docs-style.ts'
import { tagOf, TAGS } from './tags.ts'

/** The route table to read: one page, no script, nothing from elsewhere. The policy allows its own style and no more. */
export function docsPage(): { readonly text: string; readonly policy: string } {
  const groups = TAGS.map(({ name: title }) => ({ title, routes: routesOf(title) }))
  const nav = groups.map(({ title, routes }) => `<h2>${title}</h2>${list(routes.map(navItem))}`).join('')
  const main = groups
    .map(({ title, routes }) => `<h2 id="${title.toLowerCase()}">${title}</h2>${routes.map(section).join('')}`)
    .join('')
  const text = page(nav, main)
  const hash = createHash('sha256').update(STYLE).digest('base64')
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
  return { text, policy }
}

type Entry = readonly [name: string, route: Route]

function routesOf(title: string): readonly Entry[] {
  return Object.entries<Route>(ROUTES).filter(([, route]) => tagOf(route) === title)
}

function page(nav: string, main: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Airlock API</title><style>${STYLE}</style></head><body>
<nav><p class="brand">Airlock</p>${nav}</nav>
<main><h1>API</h1>
<p>Every call but the public ones carries <code>Authorization: Bearer al_…</code>. Bodies are JSON, unknown fields are
errors, and every error is <code>{"error":{"code","message","hint","retryable","requestId"}}</code>. The same table as a
document for machines: <a href="/openapi.json">openapi.json</a>.</p>
${main}<h2 id="errors">Errors</h2>${errorTable(Object.entries(ERRORS))}</main></body></html>`
}

function navItem([name, route]: Entry): string {
  return `<a href="#${name}"><b class="${route.method}">${route.method}</b> ${escape(shortPath(route.path))}</a>`
}

function shortPath(path: string): string {
  return path.replace(/^\/v1\/(?:sandboxes\/\{id\}\/)?/, '')
}

function section([name, route]: Entry): string {
  const who = route.roles === 'public' ? 'anyone, without a key' : route.roles.join(', ')
  const errors = errorsOf(route).map((code): [string, (typeof ERRORS)[ErrorCode]] => [code, ERRORS[code]])
  return `<section id="${name}"><h3><b class="${route.method}">${route.method}</b> <code>${escape(route.path)}</code></h3>
<p>${escape(route.summary)}</p><p class="facts">For: ${who}. Answers: ${ANSWERS[route.answers]}.${
    route.effect === undefined ? '' : ` Evidence: <code>${route.effect}</code>.`
  }</p><pre>${escape(example(route))}</pre>
${fields('Path', route.params)}${fields('Query', route.query)}${fields('Body', route.body)}
<details><summary>Answer and errors</summary>${fields('Answer', route.response, 'output')}${errorTable(errors)}</details></section>`
}

const ANSWERS: Readonly<Record<Route['answers'], string>> = {
  json: 'JSON',
  'json-or-events': 'JSON, or server-sent events with <code>Accept: text/event-stream</code>',
  'json-or-frames': 'JSON, or server-sent events with <code>stream</code> in the body',
  'json-or-csv': 'JSON, or CSV with <code>Accept: text/csv</code>',
  bytes: 'bytes',
  lines: 'NDJSON',
  text: 'text',
  none: 'nothing (204)',
}

function example(route: Route): string {
  const query = Object.keys(route.query?.shape ?? {}).includes('path')
    ? `?path=${route.path.endsWith('/archive') ? '/workspace' : 'notes.txt'}`
    : ''
  const parts = [`curl${route.method === 'GET' ? '' : ` -X ${route.method}`} "$AIRLOCK_URL${route.path}${query}"`]
  if (route.roles !== 'public') parts.push(`-H "Authorization: Bearer $AIRLOCK_API_KEY"`)
  if (route.body) parts.push(`-H 'Content-Type: application/json' -d '${EXAMPLE_BODIES[route.path] ?? '{}'}'`)
  if (route.sends === 'bytes')
    parts.push(`--data-binary ${route.path.endsWith('/archive') ? '@project.tar' : '@notes.txt'}`)
  return parts.join(' \\\n  ')
}

const EXAMPLE_BODIES: Readonly<Record<string, string>> = {
  '/v1/sandboxes': '{"name": "scratch"}',
  '/v1/sandboxes/{id}/commands': '{"argv": ["python3", "-c", "print(6*7)"]}',
  '/v1/sandboxes/{id}/commands/{command}/signal': '{"signal": "SIGTERM"}',
  '/v1/sandboxes/{id}/files/mkdir': '{"path": "data"}',
  '/v1/sandboxes/{id}/files/move': '{"from": "a.txt", "to": "b.txt"}',
}

function fields(title: string, schema: z.ZodType | undefined, io: 'input' | 'output' = 'input'): string {
  if (!schema) return ''
  const { properties, required } = z.toJSONSchema(schema, { io })
  const rows = Object.entries(properties ?? {}).map(([name, field]) => {
    const shape = typeof field === 'object' ? field : {}
    const mark = io === 'input' && required?.includes(name) ? ' <i>required</i>' : ''
    return `<tr><td><code>${escape(name)}</code>${mark}</td><td>${escape(typeName(shape))}</td><td>${about(shape)}</td></tr>`
  })
  return `<h4>${title}</h4><table>${rows.join('')}</table>`
}

type Shape = Exclude<NonNullable<z.core.JSONSchema.BaseSchema['items']>, boolean | unknown[]>

function typeName(shape: Shape): string {
  if (shape.enum) return shape.enum.map(String).join(' | ')
  if (shape.const !== undefined) return JSON.stringify(shape.const)
  if (shape.anyOf) return shape.anyOf.map((one) => (typeof one === 'object' ? typeName(one) : 'any')).join(' | ')
  if (shape.type === 'array') return 'array'
  return Array.isArray(shape.type) ? shape.type.join(' | ') : (shape.type ?? 'any')
}

function about(shape: Shape): string {
  const facts = [
    shape.description,
    shape.default === undefined ? undefined : `Default ${JSON.stringify(shape.default)}.`,
    shape.minimum === undefined && shape.maximum === undefined ? undefined : range(shape),
  ]
  return escape(facts.filter((fact) => fact !== undefined).join(' '))
}

function range({ minimum, maximum }: Shape): string | undefined {
  if (maximum === undefined || maximum === Number.MAX_SAFE_INTEGER) return minimum ? `At least ${minimum}.` : undefined
  return `${minimum ?? ''} to ${maximum}.`
}

function errorTable(rows: readonly (readonly [string, (typeof ERRORS)[ErrorCode]])[]): string {
  const cells = rows.map(
    ([code, row]) =>
      `<tr><td>${row.status}</td><td><code>${code}</code></td><td>${escape(row.message)} ${escape(row.hint)}</td></tr>`,
  )
  return `<table>${cells.join('')}</table>`
}

function list(items: readonly string[]): string {
  return `<ul>${items.map((item) => `<li>${item}</li>`).join('')}</ul>`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
