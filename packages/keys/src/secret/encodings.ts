/**
 * A text as it is, and in the encodings that programs use without being told. Other transformations, such as reversing or
 * encrypting, are not covered.
 */
export function encodingsOf(text: string): readonly Buffer[] {
  const bytes = Buffer.from(text, 'latin1')
  const each = (write: (byte: number) => string) => Array.from(bytes, write).join('')
  const hex = bytes.toString('hex')
  const percent = encodeURIComponent(text)
  const all = [
    text,
    JSON.stringify(text).slice(1, -1),
    text.replaceAll('/', String.raw`\/`),
    percent,
    percent.replaceAll(/%../gu, (code) => code.toLowerCase()),
    each((byte) => `%${hexOf(byte, 2)}`),
    each((byte) => `%${hexOf(byte, 2).toUpperCase()}`),
    each((byte) => String.raw`\u${hexOf(byte, 4)}`),
    each((byte) => String.raw`\u${hexOf(byte, 4).toUpperCase()}`),
    hex,
    hex.toUpperCase(),
    ...base64Of(bytes),
  ]
  return [...new Set(all)].map((one) => Buffer.from(one, 'latin1'))
}

/**
 * Base64 of a text inside a longer one depends on its offset. For each of the three offsets this is the part that no
 * neighbour changes, in both alphabets.
 */
function base64Of(bytes: Buffer): readonly string[] {
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes])
    const whole = padded.subarray(0, padded.length - (padded.length % 3))
    // The first characters hold bits of what stands before; those behind the last whole group, of what comes after.
    const skipped = before === 0 ? 0 : 4
    return [whole.toString('base64').slice(skipped), whole.toString('base64url').slice(skipped)]
  })
}

function hexOf(byte: number, length: number): string {
  return byte.toString(16).padStart(length, '0')
}
