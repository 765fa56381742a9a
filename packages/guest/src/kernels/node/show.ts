import { inspect } from 'node:util'
import { BUNDLE_BYTES } from '../../session/driver.ts'

const { stringify } = JSON
const encoder = new TextEncoder()
const encodeText = encoder.encode.bind(encoder)
const { entries, getPrototypeOf, keys } = Object
const { isArray } = Array

const TEXT_LENGTH = 256 * 1024
const JUPYTER = Symbol.for('Jupyter.display')

export type Bundle = Readonly<Record<string, unknown>>

/** The rich line of a value as JSON. What does not fit is replaced by a text that says so. */
export function showLine(kind: 'display' | 'result', value: unknown): string {
  const json = stringify({ kind, data: makeBundle(value, kind) })
  const bytes = encodeText(json).length
  if (bytes <= BUNDLE_BYTES) return json
  return stringify({ kind, data: { 'text/plain': `[an output of ${bytes} bytes, more than ${BUNDLE_BYTES}]` } })
}

/** As Node prints it, and as one line of text for what is too long. */
export function showText(value: unknown): string {
  const text = inspect(value, { depth: 4, maxArrayLength: 100, maxStringLength: 10_000, breakLength: 80 })
  return text.length <= TEXT_LENGTH ? text : `${text.slice(0, TEXT_LENGTH)}…`
}

function makeBundle(value: unknown, kind: 'display' | 'result'): Bundle {
  const own = askBundle(value) ?? (kind === 'display' && isBundle(value) ? value : undefined)
  if (!own) return { 'text/plain': showText(value) }
  const data: Record<string, unknown> = {}
  for (const [type, content] of entries(own)) data[type] = encode(type, content)
  return data
}

/** What the value says about itself, by one of two names. */
function askBundle(value: unknown): Bundle | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const ask = JUPYTER in value ? value[JUPYTER] : 'toMimeBundle' in value ? value.toMimeBundle : undefined
  if (typeof ask !== 'function') return undefined
  const bundle: unknown = Reflect.apply(ask, value, [])
  return isBundle(bundle) ? bundle : undefined
}

/** A plain object whose every key is a media type. */
function isBundle(value: unknown): value is Bundle {
  if (typeof value !== 'object' || value === null || isArray(value)) return false
  const prototype: unknown = getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) return false
  const types = keys(value)
  return types.length > 0 && types.every((type) => /^[a-z]+\/[\w.+-]{1,100}$/.test(type))
}

function encode(type: string, content: unknown): unknown {
  if (content instanceof Uint8Array) {
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
    return bytes.toString(/^(?:text\/|image\/svg)/.test(type) ? 'utf8' : 'base64')
  }
  return type.endsWith('json') || typeof content === 'string' ? content : showText(content)
}
