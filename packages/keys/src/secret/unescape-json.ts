const BACKSLASH = 0x5c
const LOWER_U = 0x75
/** Characters that an escape has as themselves: `"` and `/`. */
const PLAIN: ReadonlySet<number> = new Set([0x22, 0x2f])
/** Longest run of backslashes that is read as one: JSON in JSON, five deep, has 31. */
const LONGEST_RUN = 32
/** `u` and four digits. */
const CODE_BYTES = 5

/** Bytes with the escapes of JSON undone. */
export interface Unescaped {
  readonly bytes: Buffer
  /** Position in the escaped bytes of each byte. */
  readonly starts: Uint32Array
  /** Position from which the escaped bytes may be an escape that is not complete. */
  readonly pending: number
}

/**
 * Undoes escapes of visible ASCII characters, at every depth of JSON in JSON: a run of backslashes counts as one. A run that is
 * too long stays as it is, so that the bytes of one escape are bounded.
 */
export function unescapeJson(escaped: Buffer): Unescaped {
  const bytes = Buffer.alloc(escaped.length)
  const starts = new Uint32Array(escaped.length)
  let length = 0
  let at = 0
  const put = (byte: number, to: number) => {
    bytes[length] = byte
    starts[length] = at
    length += 1
    at = to
  }
  const unescaped = (pending: number) => ({
    bytes: bytes.subarray(0, length),
    starts: starts.subarray(0, length),
    pending,
  })
  while (at < escaped.length) {
    const byte = escaped[at] ?? 0
    if (byte !== BACKSLASH) {
      put(byte, at + 1)
      continue
    }
    const end = endOfRun(escaped, at)
    if (end - at > LONGEST_RUN) put(BACKSLASH, at + 1)
    else if (isPending(escaped, end)) return unescaped(at)
    else {
      const { char, size } = readEscape(escaped, end)
      put(char, end + size)
    }
  }
  return unescaped(escaped.length)
}

/** Looks no further than one byte beyond the longest run. */
function endOfRun(escaped: Buffer, from: number): number {
  let end = from
  while (escaped[end] === BACKSLASH && end - from <= LONGEST_RUN) end += 1
  return end
}

function isPending(escaped: Buffer, at: number): boolean {
  return at >= escaped.length || (escaped[at] === LOWER_U && at + CODE_BYTES > escaped.length)
}

/** What follows a run of backslashes; of size 0, the backslash itself. */
function readEscape(escaped: Buffer, at: number): { readonly char: number; readonly size: number } {
  const byte = escaped[at] ?? 0
  if (PLAIN.has(byte)) return { char: byte, size: 1 }
  const code = byte === LOWER_U ? escaped.toString('latin1', at + 1, at + CODE_BYTES) : ''
  if (!/^00[2-7][0-9a-f]$/i.test(code)) return { char: BACKSLASH, size: 0 }
  return { char: Number.parseInt(code, 16), size: CODE_BYTES }
}
