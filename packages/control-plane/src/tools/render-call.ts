import { createHash } from 'node:crypto'
import { AirlockError, type ToolSpec } from '@airlock/contract'
import { checkParams } from './check-params.ts'
import { isInScope } from './path-scope.ts'

type Params = Readonly<Record<string, unknown>>

/** The request of one call, without its credential. */
export interface RenderedCall {
  /** Path and query, encoded. */
  readonly target: string
  /** JSON; null without one. */
  readonly body: string | null
  readonly bodySha256: string | null
}

/** Why a call is denied: evidence. The program inside is told that it is denied. */
export class OutOfScope extends Error {}

/** Many servers take no longer one. */
const MAX_TARGET = 8192

/** Characters that a server could read as another path, once or twice decoded, or by their looks. */
const UNSAFE_IN_PATH = /[/\\%?#;\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u2044\u2215\u29f8\u29f5]/u
/** Parts that lead elsewhere. */
const DOTS = /^\.{1,2}$/

/**
 * Throws `invalid_request` for parameters that the tool does not describe, and `OutOfScope` for a final path outside of its scope.
 * The path is judged as it is sent.
 */
export function renderCall(spec: ToolSpec, params: Params): RenderedCall {
  checkParams(spec.parameters, params)
  const path = spec.path.replaceAll(/\{([^}]*)\}/g, (_, name: string) => partOf(name, params[name]))
  assertPath(path, spec)
  const query = spec.query.flatMap((name) => pairsOf(name, params[name])).join('&')
  const given = spec.body.filter((name) => Object.hasOwn(params, name)).map((name) => [name, params[name]])
  const body = spec.body.length === 0 ? null : JSON.stringify(Object.fromEntries(given))
  const bodySha256 = body === null ? null : createHash('sha256').update(body).digest('hex')
  const target = query === '' ? path : `${path}?${query}`
  if (target.length > MAX_TARGET)
    throw new AirlockError('invalid_request', `The URL has more than ${MAX_TARGET} characters.`)
  return { target, body, bodySha256 }
}

function partOf(name: string, value: unknown): string {
  const text = String(value)
  const forms = [text, text.normalize('NFKC')]
  if (text === '' || forms.some((form) => UNSAFE_IN_PATH.test(form) || DOTS.test(form)))
    throw new OutOfScope(`params.${name} is not a part of a path`)
  return encodeURIComponent(text)
}

/** A URL parser takes away "." and "..": a path that it would change is not sent. */
function assertPath(path: string, { origin, scope }: ToolSpec): void {
  const url = URL.parse(origin + path)
  if (url?.pathname !== path || url.origin !== origin || /(?:^|\/)\.{1,2}(?:\/|$)/.test(path))
    throw new OutOfScope('the path has two readings')
  if (!isInScope(path, scope)) throw new OutOfScope(`the path ${path.slice(0, 200)} is in no scope of the tool`)
}

function pairsOf(name: string, value: unknown): readonly string[] {
  if (value === undefined) return []
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.map((one) => `${encodeURIComponent(name)}=${encodeURIComponent(String(one))}`)
}
