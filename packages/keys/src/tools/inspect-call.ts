import { holdsKey } from '../secret/scrubber.ts'

/** Depth of encodings in encodings that are undone. */
const MAX_DECODINGS = 2
/** Shortest run that may hold a secret in base64 or hexadecimal. */
const RUNS = /[A-Za-z0-9+/_=-]{20,}/g

/**
 * Whether a text holds the value of a secret: as it is, in an encoding that programs use, or within a longer text in percent,
 * base64 or hexadecimal encoding. The work is linear in the text.
 */
export function holdsSecret(text: string, encodings: readonly Buffer[], decodings = MAX_DECODINGS): boolean {
  if (holdsKey(text, encodings)) return true
  if (decodings === 0) return false
  return decodedOf(text).some((decoded) => holdsSecret(decoded, encodings, decodings - 1))
}

function decodedOf(text: string): readonly string[] {
  const runs = text.match(RUNS) ?? []
  const hex = runs.filter((run) => /^[0-9a-f]+$/i.test(run))
  return [percentDecoded(text), ...joined(runs, 'base64'), ...joined(hex, 'hex')].filter(
    (one) => one !== text && one !== '',
  )
}

/** One text of all runs, so that the number of decodings does not grow with them. */
function joined(runs: readonly string[], encoding: 'base64' | 'hex'): readonly string[] {
  return runs.length === 0 ? [] : [runs.map((run) => Buffer.from(run, encoding).toString('latin1')).join('\n')]
}

/** Escapes that are not whole stay as they are. */
function percentDecoded(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
