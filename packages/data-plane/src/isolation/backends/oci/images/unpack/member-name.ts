import { AirlockError } from '@airlock/contract'

const MAX_BYTES = 4095
const MAX_PART_BYTES = 255
const MAX_DEPTH = 128
// oxlint-disable-next-line no-control-regex -- these are what is looked for
const CONTROL = /[\u0000-\u001F\u007F]/u

/** Fails closed: bytes that are not UTF-8, or that a terminal would obey, are not a name. */
export function decodeName(bytes: Uint8Array): string {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refuse(Buffer.from(bytes).toString('latin1'), 'is not UTF-8')
  }
  if (CONTROL.test(text)) throw refuse(text, 'contains control characters')
  return text
}

/** The parts of a member's path below the root: none for the root itself. Fails closed. */
export function partsOf(name: string): readonly string[] {
  if (name.startsWith('/')) throw refuse(name, 'is absolute')
  if (Buffer.byteLength(name) > MAX_BYTES) throw refuse(name, 'is too long')
  const parts = name.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) throw refuse(name, 'contains ".."')
  if (parts.length > MAX_DEPTH) throw refuse(name, 'is too deep')
  if (parts.some((part) => Buffer.byteLength(part) > MAX_PART_BYTES)) throw refuse(name, 'has a part that is too long')
  return parts
}

/** Throws when a symbolic link in `directory` leads out of the root, as its words say. */
export function throwOnLinkOut(name: string, directory: readonly string[], target: string): void {
  if (target === '') throw refuse(name, 'is a link to nothing')
  if (Buffer.byteLength(target) > MAX_BYTES) throw refuse(name, 'is a link whose target is too long')
  let depth = target.startsWith('/') ? 0 : directory.length
  for (const part of target.split('/')) {
    if (part === '' || part === '.') continue
    depth += part === '..' ? -1 : 1
    if (depth < 0) throw refuse(name, 'is a link that leads out of the image')
  }
}

export function refuse(name: string, why: string): AirlockError {
  return new AirlockError('template_invalid', `The entry ${JSON.stringify(name.slice(0, 200))} ${why}.`)
}
