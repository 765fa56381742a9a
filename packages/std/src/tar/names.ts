import { refuseEntry } from './tar-error.ts'

const MAX_PATH_BYTES = 4095
const MAX_PART_BYTES = 255
export const MAX_DEPTH = 128
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const CONTROL = /[\u0000-\u001F\u007F-\u009F]/u

/** The relative path that a name means, or undefined for the root. Fails closed. */
export function pathOf(bytes: Uint8Array): string | undefined {
  const name = decodeName(bytes)
  if (name === '') throw refuseEntry(name, 'has no name')
  if (name.startsWith('/')) throw refuseEntry(name, 'is absolute')
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  throwOnParts(name, parts)
  return parts.length === 0 ? undefined : parts.join('/')
}

/**
 * The target of a link, once it is certain that it stays inside. `..` may only come first: behind a name it would mean
 * the parent of wherever another link leads. Fails closed.
 */
export function targetOf(path: string, bytes: Uint8Array): string {
  const target = decodeName(bytes)
  const why = whyNotInside(path, target)
  if (why !== undefined) throw refuseEntry(path, why)
  return target
}

/** Undefined for a link that stays inside of the directory that `path` is relative to. */
export function whyNotInside(path: string, target: string): string | undefined {
  if (target === '') return 'is a link to nothing'
  if (CONTROL.test(target)) return 'is a link to a name with control characters'
  if (target.startsWith('/')) return 'is a link to an absolute path'
  if (Buffer.byteLength(target) > MAX_PATH_BYTES) return 'is a link whose target is too long'
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const up = parts.findIndex((part) => part !== '..')
  const leading = up < 0 ? parts.length : up
  if (parts.slice(leading).includes('..')) return 'is a link with ".." behind a name'
  if (leading > path.split('/').length - 1) return 'is a link that leads out'
  return undefined
}

/** Undefined for a name that every side of a transfer takes. */
export function whyNotName(name: string): string | undefined {
  if (CONTROL.test(name)) return 'contains control characters'
  return Buffer.byteLength(name) > MAX_PART_BYTES ? 'has a part that is too long' : undefined
}

function throwOnParts(name: string, parts: readonly string[]): void {
  if (Buffer.byteLength(name) > MAX_PATH_BYTES) throw refuseEntry(name, 'is too long')
  if (parts.includes('..')) throw refuseEntry(name, 'contains ".."')
  if (parts.length > MAX_DEPTH) throw refuseEntry(name, 'is too deep')
  for (const part of parts) {
    const why = whyNotName(part)
    if (why !== undefined) throw refuseEntry(name, why)
  }
}

function decodeName(bytes: Uint8Array): string {
  let name: string
  try {
    name = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refuseEntry(Buffer.from(bytes).toString('latin1'), 'has a name that is not UTF-8')
  }
  if (CONTROL.test(name)) throw refuseEntry(name, 'contains control characters')
  return name
}
