/** How a path begins that is not UTF-8. What follows is a path from the root, with bytes as `%XX`. */
const PREFIX = 'file://'
const PLAIN = /^[A-Za-z0-9._~/-]$/u

/**
 * A path as text that means these bytes and no others: itself, where it is UTF-8, else a `file://` URL. Both are taken
 * wherever a file is named; nothing has two names, for a URL of what is UTF-8 is no path.
 */
export function pathText(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (Buffer.from(text).equals(bytes) && !text.startsWith(PREFIX)) return text
  return PREFIX + Array.from(bytes, encodeByte).join('')
}

/** The bytes that a path means; undefined when it means none. */
export function pathBytes(text: string): Buffer | undefined {
  if (!text.startsWith(PREFIX)) return isNamed(text) ? Buffer.from(text) : undefined
  const url = text.slice(PREFIX.length)
  if (!/^\/(?:[^%]|%[0-9a-f]{2})*$/iu.test(url)) return undefined
  const bytes = Buffer.concat(
    url
      .split(/(%[0-9a-f]{2})/iu)
      .map((part) => (part.startsWith('%') ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part))),
  )
  const shown = bytes.toString('utf8')
  return isNamed(shown) && !Buffer.from(shown).equals(bytes) ? bytes : undefined
}

/** No NUL and no "..", so it means what it shows. */
function isNamed(path: string): boolean {
  return path !== '' && !path.includes('\0') && !path.split('/').includes('..')
}

function encodeByte(byte: number): string {
  const char = String.fromCodePoint(byte)
  return PLAIN.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
}
