import { pathText } from '@airlock/contract/guest'

/** The bytes of a name as Python hands it over: what is not UTF-8 comes as lone surrogates. */
export function nameBytes(name: string): Buffer {
  if (name.isWellFormed()) return Buffer.from(name)
  return Buffer.concat(
    Array.from(name, (character) => {
      const code = character.codePointAt(0) ?? 0
      return code >= 0xdc80 && code <= 0xdcff ? Buffer.from([code - 0xdc00]) : Buffer.from(character)
    }),
  )
}

/** As callers see it: itself where it is UTF-8, else a `file://` URL from the root of the worktree. */
export function shownName(bytes: Buffer): string {
  const text = pathText(bytes)
  return text.startsWith('file://') ? pathText(Buffer.concat([Buffer.from('/'), bytes])) : text
}
