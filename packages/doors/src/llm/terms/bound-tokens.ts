/** Characters that are normalised at once. Normalisation takes the square of the length of a run of combining marks. */
const SLICE = 1 << 11

/**
 * No tokenizer makes more tokens of a text: each token stands for a byte at least. Some normalise first (NFKC), which makes
 * a few characters longer, up to eleven times, so the longer of both counts.
 */
export function boundTokens(text: string): number {
  const bytes = Buffer.byteLength(text)
  return bytes === text.length ? bytes : Math.max(bytes, normalisedBytes(text))
}

/** A character at the border of two slices may compose otherwise than in the whole text. */
const AT_BORDER = 16

function normalisedBytes(text: string): number {
  let bytes = 0
  for (let from = 0; from < text.length;) {
    const end = from + SLICE
    const to = isLowSurrogate(text.charCodeAt(end)) ? end + 1 : end
    bytes += Buffer.byteLength(text.slice(from, to).normalize('NFKC')) + (to < text.length ? AT_BORDER : 0)
    from = to
  }
  return bytes
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}
