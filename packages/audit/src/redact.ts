import type { NewRecord } from '@airlock/contract'
import type { z } from 'zod'
import { redactText } from './redact-text.ts'

const REDACTED = '[redacted]'
const CUT = '[cut]'
const MAX_DEPTH = 8
const MAX_ITEMS = 100
const MAX_VALUES = 2000
const MAX_CHARACTERS = 64 * 1024
const MAX_KEY = 256

export type Json = z.core.util.JSONType
export type Payload = Readonly<Record<string, Json>>

/** Keys whose value is secret whatever it looks like. Compared without case, `-` and `_`. */
const SECRET_KEY =
  /pass(?:word|wd|phrase|code)|secret|token|authorization|credential|cookie|apikey|accesskey|privatekey|signingkey|encryptionkey|bearer|^(?:auth|pin|pwd)$/

/** An argument after which the secret follows as the next one. */
export const SECRET_FLAG = /^--?[a-z0-9_-]*(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|credentials?)$/i

/**
 * The payload as evidence may hold it: without anything that looks like a secret, in keys and values, and bounded in
 * depth, length and number. What was left out shows as `[redacted]` or `[cut]`. Any value is accepted: what is not
 * JSON becomes text.
 */
export function redact(payload: Readonly<Record<string, unknown>>): Payload {
  return redactObject(payload, { depth: 0, left: { values: MAX_VALUES, characters: MAX_CHARACTERS } })
}

/** Redacts all of a record that others may have written. Who did it to what stays as it is, cut to a bound. */
export function redactRecord<T extends NewRecord>(record: T): T {
  const error = record.error && { code: redactText(record.error.code), message: redactText(record.error.message) }
  return {
    ...record,
    agent: record.agent?.slice(0, MAX_KEY) ?? null,
    sandbox: record.sandbox?.slice(0, MAX_KEY) ?? null,
    actor: record.actor.slice(0, MAX_KEY),
    payload: redact(record.payload ?? {}),
    ...(error ? { error } : {}),
  }
}

interface Place {
  readonly depth: number
  /** Shared by the whole payload. */
  readonly left: { values: number; characters: number }
}

function redactValue(value: unknown, place: Place): Json {
  place.left.values -= 1
  if (isSpent(place) || place.depth > MAX_DEPTH) return CUT
  if (value === null || value === undefined) return null
  if (typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (Array.isArray(value)) return redactArray(value, place)
  if (typeof value === 'object') return redactObject(value, place)
  return spend(redactText(typeof value === 'string' ? value : `[${typeof value}]`), place)
}

function redactArray(items: readonly unknown[], place: Place): Json[] {
  const result: Json[] = []
  let flagged = false
  for (const item of items) {
    if (result.length === MAX_ITEMS - 1 && items.length > MAX_ITEMS) result.push(CUT)
    if (result.length === MAX_ITEMS || isSpent(place)) break
    result.push(flagged ? REDACTED : redactValue(item, inside(place)))
    flagged = typeof item === 'string' && item.length <= MAX_KEY && SECRET_FLAG.test(item)
  }
  return result
}

function redactObject(value: object, place: Place): Record<string, Json> {
  const result = new Map<string, Json>()
  const fields: readonly (readonly [string, unknown])[] = Object.entries(value)
  for (const [name, item] of fields) {
    if (item === undefined) continue
    if (result.size === MAX_ITEMS || isSpent(place)) {
      result.set(CUT, true)
      break
    }
    const key = unique(spend(redactKey(name), place), result)
    result.set(key, isSecretKey(name) && !isCount(name, item) ? REDACTED : redactValue(item, inside(place)))
  }
  return Object.fromEntries(result)
}

/** `tokens: 1000` is how many. */
function isCount(name: string, value: unknown): boolean {
  return typeof value === 'number' && /tokens$/i.test(name)
}

export function isSecretKey(name: string): boolean {
  return SECRET_KEY.test(
    name
      .slice(0, MAX_KEY)
      .toLowerCase()
      .replaceAll(/[-_.\s]/g, ''),
  )
}

/** `__proto__` is renamed because schema libraries drop it silently. */
function redactKey(name: string): string {
  return name === '__proto__' ? '[__proto__]' : redactText(name).slice(0, MAX_KEY)
}

function unique(key: string, taken: ReadonlyMap<string, unknown>): string {
  let name = key
  for (let n = 2; taken.has(name); n++) name = `${key}#${n}`
  return name
}

function inside(place: Place): Place {
  return { depth: place.depth + 1, left: place.left }
}

function isSpent(place: Place): boolean {
  return place.left.values < 0 || place.left.characters < 0
}

function spend(text: string, place: Place): string {
  place.left.characters -= text.length
  return place.left.characters < 0 ? CUT : text
}
